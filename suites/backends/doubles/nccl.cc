// SPDX-License-Identifier: Apache-2.0
// A double of NCCL, for tests without a GPU: on the double of CUDA's runtime, ranks in one process or in several. It
// has the functions of harness/backends/nccl/library.h, and what NCCL demands of its callers: groups, a GPU for each
// rank, memory of the device, and with NCCL_COMM_BLOCKING=0 that a busy communicator is asked until it is not.
//
//   TUTTI_DOUBLE_NCCL   its version (22809); before 2.24 it does not know f8e4m3 and f8e5m2
//   TUTTI_DOUBLE_HANG   the number of a group of calls that does not end before it is aborted
//   TUTTI_DOUBLE_WRONG  1: a bit of the first element of every reduction is another
//
// Built with TUTTI_DOUBLE_IS_OLD it lacks what version 2.18 lacks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "harness/backends/nccl/library.h"
#include "suites/backends/doubles/collectives.h"
#include "suites/backends/doubles/memory.h"
#include "suites/backends/doubles/settings.h"

#define TUTTI_EXPORTED extern "C" __attribute__((visibility("default")))

namespace tutti::cuda {
#define TUTTI_IMPORTED(result, name, parameters) extern "C" result name parameters;
TUTTI_CUDA_FUNCTIONS(TUTTI_IMPORTED)
#undef TUTTI_IMPORTED
}  // namespace tutti::cuda

namespace tutti::backend_nccl {

#define TUTTI_DECLARED(result, name, parameters) TUTTI_EXPORTED result name parameters;
TUTTI_NCCL_FUNCTIONS(TUTTI_DECLARED)
TUTTI_NCCL_LATER_FUNCTIONS(TUTTI_DECLARED)
#undef TUTTI_DECLARED

namespace {

using doubles::Kind;
using doubles::Operation;
using doubles::Seat;

constexpr Answer kCudaError = 1, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr auto kPause = std::chrono::microseconds(100);

int version() { return doubles::number_of("TUTTI_DOUBLE_NCCL", 22809); }
bool blocks() { return doubles::number_of("NCCL_COMM_BLOCKING", 1) != 0; }

thread_local std::string last_error;

Answer fail(Answer answer, const std::string& text) {
  last_error = text;
  return answer;
}

/// What a communicator is at when it does not block: done when it returns true.
using Task = std::function<bool()>;

struct Communicator {
  std::shared_ptr<Seat> seat = std::make_shared<Seat>();
  std::list<Task> tasks;
  Answer error = kSuccess;
  std::string why;  ///< of the error
  int splits = 0;
  std::vector<std::pair<tutti::Dtype, Factor>> ops;  ///< of premul_sum, from the sixth op on
  std::set<void*> registered;
  int live_ops = 0;

  /// Goes on with what it is at.
  Answer advance() {
    while (error == kSuccess && !tasks.empty()) {
      if (!tasks.front()()) return kInProgress;
      tasks.pop_front();
    }
    if (error != kSuccess) last_error = why;
    if (error == kSuccess && seat->has_lost_a_rank) return fail(kRemoteError, seat->loss);
    return error;
  }
};

/// All communicators of the process.
struct Registry {
  std::recursive_mutex mutex;
  std::map<Comm, std::shared_ptr<Communicator>> all;
  std::set<void*> symmetric;  ///< memory of ncclMemAlloc

  static Registry& get() {
    static auto& one = *new Registry();  // a thread that waits for a lost rank may outlive main
    return one;
  }
  std::shared_ptr<Communicator> find(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(comm);
    return found == all.end() ? nullptr : found->second;
  }
  Comm add(const std::shared_ptr<Communicator>& made) {
    const std::lock_guard lock(mutex);
    return all.emplace(made.get(), made).first->first;
  }
  std::shared_ptr<Communicator> remove(Comm comm) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(comm);
    return found == all.end() ? nullptr : all.extract(found).mapped();
  }
};

/// A communicator's `advance`, one thread at a time.
Answer advance(Communicator& communicator) {
  const std::lock_guard lock(Registry::get().mutex);
  return communicator.advance();
}

Answer finish(Communicator& communicator) {
  for (;;) {
    const Answer answer = advance(communicator);
    if (answer != kInProgress || communicator.seat->is_aborted) return answer;
    std::this_thread::sleep_for(kPause);
  }
}

// Groups

struct Call {
  std::shared_ptr<Communicator> communicator;
  Operation what;
  Stream stream;
};

struct OpenGroup {
  int depth = 0;
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Communicator>> joining;
  std::vector<Comm*> parts;  ///< of communicators that are split: known when those have settled
  Answer error = kSuccess;
};
thread_local OpenGroup group;

/// What is put on a stream: calls that go together.
struct Launch {
  std::shared_ptr<Seat> seat;
  std::vector<Operation> calls;
  bool is_for_a_graph = false;  ///< which may do it again, and as often as it likes
};

void do_launch(void* argument) {
  auto* const launch = static_cast<Launch*>(argument);
  static std::atomic<int> launches = 0;
  if (++launches == doubles::number_of("TUTTI_DOUBLE_HANG", 0)) {
    while (!launch->seat->is_aborted) std::this_thread::sleep_for(kPause);
  }
  perform(*launch->seat, launch->calls);
  if (!launch->is_for_a_graph) delete launch;
}

Answer put(const std::shared_ptr<Seat>& seat, Stream stream, std::vector<Operation> calls) {
  doubles::tell("calls " + std::to_string(calls.size()));
  int capturing = 0;
  cuda::cudaStreamIsCapturing(stream, &capturing);
  auto* const launch = new Launch{.seat = seat, .calls = std::move(calls), .is_for_a_graph = capturing != 0};
  static auto& kept = *new std::list<std::unique_ptr<Launch>>();
  if (launch->is_for_a_graph) {
    const std::lock_guard lock(Registry::get().mutex);
    kept.emplace_back(launch);
  }
  return cuda::cudaLaunchHostFunc(stream, do_launch, launch) == cuda::kSuccess ? kSuccess : kCudaError;
}

/// Where communicators do not block, they are on the stream some questions later.
Answer launch(const std::shared_ptr<Communicator>& communicator, Stream stream, std::vector<Operation> calls) {
  if (blocks()) return put(communicator->seat, stream, std::move(calls));
  const std::lock_guard lock(Registry::get().mutex);
  communicator->tasks.push_back([seat = communicator->seat, stream, calls = std::move(calls), questions = 3]() mutable {
    return --questions == 0 && put(seat, stream, std::move(calls)) == kSuccess;
  });
  return kInProgress;
}

Answer end_group() {
  const OpenGroup ended = std::exchange(group, OpenGroup());
  if (ended.error != kSuccess) return ended.error;
  Answer answer = kSuccess;
  for (const auto& communicator : ended.joining) {
    const Answer joined = blocks() ? finish(*communicator) : kInProgress;
    if (joined != kSuccess && (answer == kSuccess || answer == kInProgress)) answer = joined;
  }
  for (Comm* const part : ended.parts) {
    if (blocks() && *part != nullptr) finish(*Registry::get().find(*part));
  }
  std::vector<std::pair<Comm, Stream>> order;
  std::map<std::pair<Comm, Stream>, std::vector<Operation>> launches;
  for (const Call& call : ended.calls) {
    const std::pair key(Comm(call.communicator.get()), call.stream);
    if (!launches.contains(key)) order.push_back(key);
    launches[key].push_back(call.what);
  }
  for (const auto& key : order) {
    const Answer launched = launch(Registry::get().find(key.first), key.second, std::move(launches[key]));
    if (launched != kSuccess && (answer == kSuccess || answer == kInProgress)) answer = launched;
  }
  return answer;
}

// Calls

std::size_t input_blocks(Kind kind, int ranks, bool is_root) {
  const auto all = static_cast<std::size_t>(ranks);
  switch (kind) {
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      return all;
    case Kind::scatter:
      return is_root ? all : 0;
    case Kind::broadcast:
      return is_root ? 1 : 0;
    case Kind::receive:
      return 0;
    default:
      return 1;
  }
}

std::size_t output_blocks(Kind kind, int ranks, bool is_root) {
  const auto all = static_cast<std::size_t>(ranks);
  switch (kind) {
    case Kind::all_gather:
    case Kind::all_to_all:
      return all;
    case Kind::gather:
      return is_root ? all : 0;
    case Kind::reduce:
      return is_root ? 1 : 0;
    case Kind::send:
      return 0;
    default:
      return 1;
  }
}

Answer check_memory(const char* what, const void* memory, std::size_t bytes) {
  if (bytes == 0 || tutti_double_at(memory, bytes) != nullptr) return kSuccess;
  return fail(kInvalidArgument,
              std::string(what) + " is not " + std::to_string(bytes) + " bytes of the device's memory");
}

Answer check(const Communicator& communicator, const Operation& what, Type type) {
  const Seat& seat = *communicator.seat;
  if (type < kInt8 || type > (version() < kVersionOfF8 ? kBfloat16 : kF8e5m2)) {
    return fail(kInvalidArgument, "type " + std::to_string(type) + " is unknown");
  }
  if (what.root < 0 || what.root >= seat.ranks) return fail(kInvalidArgument, "rank " + std::to_string(what.root));
  const bool is_root = seat.rank == what.root;
  const Answer answer =
      check_memory("the input", what.send, what.bytes() * input_blocks(what.kind, seat.ranks, is_root));
  if (answer != kSuccess) return answer;
  return check_memory("the output", what.receive, what.bytes() * output_blocks(what.kind, seat.ranks, is_root));
}

/// Our op of one of NCCL's, and what it multiplies by.
Answer take_op(const Communicator& communicator, Op op, Type type, Operation& what) {
  constexpr tutti::Op kOps[] = {tutti::Op::sum, tutti::Op::prod, tutti::Op::max, tutti::Op::min, tutti::Op::avg};
  constexpr auto kBuiltIn = static_cast<Op>(std::size(kOps));
  if (op >= 0 && op < kBuiltIn) {
    what.op = kOps[op];
    return kSuccess;
  }
  const auto own = static_cast<std::size_t>(op - kBuiltIn);
  if (op < 0 || own >= communicator.ops.size() || communicator.ops[own].first != static_cast<tutti::Dtype>(type)) {
    return fail(kInvalidArgument, "op " + std::to_string(op) + " is unknown");
  }
  what.op = tutti::Op::premul_sum;
  what.factor = communicator.ops[own].second;
  return kSuccess;
}

/// NCCL's order of types is that of ours.
Answer call(Comm comm, Operation what, Type type, const Op* op, Stream stream) {
  const auto communicator = Registry::get().find(comm);
  if (communicator == nullptr) return fail(kInvalidArgument, "this is no communicator");
  if (!communicator->tasks.empty()) return fail(kInvalidUsage, "the communicator is busy with the last call");
  what.dtype = static_cast<tutti::Dtype>(type);
  Answer answer = op == nullptr ? kSuccess : take_op(*communicator, *op, type, what);
  if (answer == kSuccess) answer = check(*communicator, what, type);
  if (answer != kSuccess) {
    if (group.depth > 0 && group.error == kSuccess) group.error = answer;
    return answer;
  }
  if (what.count == 0 && what.kind != Kind::send && what.kind != Kind::receive) return kSuccess;
  if (group.depth == 0) return launch(communicator, stream, {what});
  group.calls.push_back({.communicator = communicator, .what = what, .stream = stream});
  return kSuccess;
}

// Joining

/// When all are there: whether each has a GPU of its own.
bool check_devices(Communicator& communicator) {
  const doubles::Room& room = communicator.seat->meeting->room();
  const auto ranks = static_cast<std::size_t>(communicator.seat->ranks);
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = a + 1; b < ranks; ++b) {
      if (room.devices[a] != room.devices[b]) continue;
      communicator.error = kInvalidUsage;
      communicator.why = "Duplicate GPU detected : rank " + std::to_string(a) + " and rank " + std::to_string(b) +
                         " both on CUDA device " + std::to_string(room.devices[a]);
    }
  }
  return true;
}

struct Membership {
  std::string name;
  int rank;
  int ranks;
  int device;
};

std::shared_ptr<Communicator> join(const Membership& as) {
  auto made = std::make_shared<Communicator>();
  Seat& seat = *made->seat;
  seat.rank = as.rank;
  seat.ranks = as.ranks;
  seat.device = as.device;
  seat.meeting = std::make_unique<doubles::Meeting>(as.name, as.rank, as.ranks, as.device);
  made->tasks.push_back([communicator = made.get()] {
    return communicator->seat->meeting->is_complete() && check_devices(*communicator);
  });
  return made;
}

/// The seat in the part of a communicator that has this colour; null: in none.
std::shared_ptr<Communicator> join_part(const Communicator& whole, int number, int colour) {
  if (colour < 0) return nullptr;
  const Seat& seat = *whole.seat;
  const doubles::Split& split = seat.meeting->room().splits[static_cast<std::size_t>(number)];
  std::vector<std::pair<int, int>> members;  // key and rank
  for (int rank = 0; rank < seat.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (split.colours[at] == colour) members.emplace_back(split.keys[at], rank);
  }
  std::ranges::sort(members);
  const auto mine = std::ranges::find(members, seat.rank, &std::pair<int, int>::second);
  return join({.name = seat.meeting->name() + "-" + std::to_string(number) + "-" + std::to_string(colour),
               .rank = static_cast<int>(mine - members.begin()),
               .ranks = static_cast<int>(members.size()),
               .device = seat.device});
}

Answer leave(Comm comm, doubles::RankState state) {
  const auto gone = Registry::get().remove(comm);
  if (gone == nullptr) return fail(kInvalidArgument, "this is no communicator");
  if (state == doubles::rank_aborted) gone->seat->is_aborted = true;
  gone->seat->meeting->leave(state);
  return kSuccess;
}

}  // namespace

Answer ncclGetVersion(int* number) {
  *number = version();
  return kSuccess;
}

const char* ncclGetErrorString(Answer answer) {
  constexpr const char* kTexts[] = {"no error",        "unhandled cuda error", "unhandled system error",
                                    "internal error",  "invalid argument",     "invalid usage",
                                    "a rank was lost", "in progress"};
  return answer >= 0 && answer < static_cast<Answer>(std::size(kTexts)) ? kTexts[answer] : "unknown";
}

const char* ncclGetLastError(Comm /*comm*/) { return last_error.c_str(); }

Answer ncclGetUniqueId(UniqueId* id) {
  std::memset(id, 0, sizeof(UniqueId));
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::uint64_t number = 0;
  random.read(reinterpret_cast<char*>(&number), sizeof(number));
  std::snprintf(id->bytes, sizeof(UniqueId), "tutti-nccl-%016llx", static_cast<unsigned long long>(number));
  return kSuccess;
}

Answer ncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank) {
  if (rank < 0 || rank >= ranks || ranks > doubles::kMostRanks) {
    return fail(kInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  int device = 0;
  cuda::cudaGetDevice(&device);
  doubles::tell("rank on device " + std::to_string(device) + ", policy " +
                std::to_string(doubles::number_of("NCCL_CTA_POLICY", 0)));
  const auto made = join({.name = id.bytes, .rank = rank, .ranks = ranks, .device = device});
  *comm = Registry::get().add(made);
  if (group.depth > 0) {
    group.joining.push_back(made);
    return kSuccess;
  }
  return blocks() ? finish(*made) : kInProgress;
}

Answer ncclCommSplit(Comm comm, int colour, int key, Comm* made, void* /*config*/) {
  const auto whole = Registry::get().find(comm);
  if (whole == nullptr || whole->splits == doubles::kMostSplits)
    return fail(kInvalidArgument, "no communicator, or too many splits");
  *made = nullptr;
  const int number = whole->splits++;
  doubles::Split& split = whole->seat->meeting->room().splits[static_cast<std::size_t>(number)];
  const auto at = static_cast<std::size_t>(whole->seat->rank);
  split.colours[at] = colour;
  split.keys[at] = key;
  ++split.arrived;
  std::unique_lock lock(Registry::get().mutex);
  whole->tasks.push_back([=, part = std::shared_ptr<Communicator>(), whole = whole.get()]() mutable {
    if (whole->seat->meeting->room().splits[static_cast<std::size_t>(number)].arrived < whole->seat->ranks)
      return false;
    part = join_part(*whole, number, colour);
    if (part != nullptr) *made = Registry::get().add(part);
    return true;
  });
  lock.unlock();
  doubles::tell("split by colour " + std::to_string(colour));
  if (group.depth > 0) {
    group.joining.push_back(whole);
    group.parts.push_back(made);
    return kSuccess;
  }
  if (!blocks()) return kInProgress;
  Answer answer = finish(*whole);
  if (answer == kSuccess && *made != nullptr) answer = finish(*Registry::get().find(*made));
  return answer;
}

Answer ncclCommDestroy(Comm comm) { return leave(comm, doubles::rank_left); }
Answer ncclCommAbort(Comm comm) { return leave(comm, doubles::rank_aborted); }

Answer ncclCommGetAsyncError(Comm comm, Answer* answer) {
  const auto communicator = Registry::get().find(comm);
  if (communicator == nullptr) return fail(kInvalidArgument, "this is no communicator");
  *answer = advance(*communicator);
  return kSuccess;
}

Answer ncclCommCount(Comm comm, int* ranks) {
  *ranks = Registry::get().find(comm)->seat->ranks;
  return kSuccess;
}
Answer ncclCommUserRank(Comm comm, int* rank) {
  *rank = Registry::get().find(comm)->seat->rank;
  return kSuccess;
}

Answer ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}
Answer ncclGroupEnd() {
  if (group.depth == 0) return fail(kInvalidUsage, "no group was started");
  if (--group.depth > 0) return kSuccess;
  return end_group();
}

Answer ncclRedOpCreatePreMulSum(Op* op, void* factor, Type type, int residence, Comm comm) {
  const auto communicator = Registry::get().find(comm);
  if (communicator == nullptr || residence != kScalarOfHost) return fail(kInvalidArgument, "no factor of the host");
  const auto dtype = static_cast<tutti::Dtype>(type);
  Factor bytes{};
  std::memcpy(bytes.data(), factor, size_of(dtype));
  *op = static_cast<Op>(5 + communicator->ops.size());
  communicator->ops.emplace_back(dtype, bytes);
  ++communicator->live_ops;
  return kSuccess;
}
Answer ncclRedOpDestroy(Op op, Comm comm) {
  const auto communicator = Registry::get().find(comm);
  if (communicator == nullptr || op < 5) return fail(kInvalidArgument, "no op of this communicator");
  --communicator->live_ops;
  return kSuccess;
}

Answer ncclBroadcast(const void* send, void* receive, std::size_t count, Type type, int root, Comm comm,
                     Stream stream) {
  return call(comm, {.kind = Kind::broadcast, .send = send, .receive = receive, .count = count, .root = root}, type,
              nullptr, stream);
}
Answer ncclReduce(const void* send, void* receive, std::size_t count, Type type, Op op, int root, Comm comm,
                  Stream stream) {
  return call(comm, {.kind = Kind::reduce, .send = send, .receive = receive, .count = count, .root = root}, type, &op,
              stream);
}
Answer ncclAllReduce(const void* send, void* receive, std::size_t count, Type type, Op op, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::all_reduce, .send = send, .receive = receive, .count = count}, type, &op, stream);
}
Answer ncclAllGather(const void* send, void* receive, std::size_t count, Type type, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::all_gather, .send = send, .receive = receive, .count = count}, type, nullptr,
              stream);
}
Answer ncclReduceScatter(const void* send, void* receive, std::size_t count, Type type, Op op, Comm comm,
                         Stream stream) {
  return call(comm, {.kind = Kind::reduce_scatter, .send = send, .receive = receive, .count = count}, type, &op,
              stream);
}
Answer ncclSend(const void* send, std::size_t count, Type type, int peer, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::send, .send = send, .count = count, .root = peer}, type, nullptr, stream);
}
Answer ncclRecv(void* receive, std::size_t count, Type type, int peer, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::receive, .receive = receive, .count = count, .root = peer}, type, nullptr, stream);
}

#ifndef TUTTI_DOUBLE_IS_OLD

Answer ncclMemAlloc(void** memory, std::size_t bytes) {
  if (cuda::cudaMalloc(memory, bytes) != cuda::kSuccess) return kCudaError;
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().symmetric.insert(*memory);
  return kSuccess;
}
Answer ncclMemFree(void* memory) {
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().symmetric.erase(memory);
  return cuda::cudaFree(memory) == cuda::kSuccess ? kSuccess : kCudaError;
}
Answer ncclCommRegister(Comm comm, void* memory, std::size_t bytes, void** handle) {
  if (const Answer answer = check_memory("the buffer", memory, bytes); answer != kSuccess) return answer;
  Registry::get().find(comm)->registered.insert(memory);
  *handle = memory;
  doubles::tell("registration");
  return kSuccess;
}
Answer ncclCommDeregister(Comm comm, void* handle) {
  return Registry::get().find(comm)->registered.erase(handle) == 1 ? kSuccess
                                                                   : fail(kInvalidArgument, "no such handle");
}
/// Made by all ranks of the communicator together, each of the same size.
Answer ncclCommWindowRegister(Comm comm, void* memory, std::size_t bytes, Window* window, int flags) {
  if (!Registry::get().symmetric.contains(memory)) return fail(kInvalidArgument, "no memory of ncclMemAlloc");
  *window = nullptr;
  if (doubles::number_of("NCCL_WIN_ENABLE", 1) == 0) return kSuccess;
  if (flags != kSymmetricWindow) return fail(kInvalidArgument, "flags");
  if (const Answer answer = check_memory("the buffer", memory, bytes); answer != kSuccess) return answer;
  const auto communicator = Registry::get().find(comm);
  doubles::Room& room = communicator->seat->meeting->room();
  const auto me = static_cast<std::size_t>(communicator->seat->rank);
  const std::uint64_t number = room.windows[me] + 1;
  const std::uint64_t at = number % doubles::kWindowsAtOnce;
  room.window_bytes[me][at] = bytes;
  room.windows[me] = number;
  doubles::tell("window");
  {
    const std::lock_guard lock(Registry::get().mutex);
    communicator->tasks.push_back([=, made = communicator.get()] {
      const doubles::Room& all = made->seat->meeting->room();
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(made->seat->ranks); ++rank) {
        if (all.windows[rank] < number) return false;
        if (all.window_bytes[rank][at] != bytes) {
          made->error = kInvalidArgument;
          made->why = "rank " + std::to_string(rank) + " has a window of another size";
        }
      }
      made->registered.insert(memory);
      *window = memory;
      return true;
    });
  }
  if (group.depth > 0) {
    group.joining.push_back(communicator);
    return kSuccess;
  }
  return blocks() ? finish(*communicator) : kInProgress;
}
Answer ncclCommWindowDeregister(Comm comm, Window window) { return ncclCommDeregister(comm, window); }
Answer ncclGather(const void* send, void* receive, std::size_t count, Type type, int root, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::gather, .send = send, .receive = receive, .count = count, .root = root}, type,
              nullptr, stream);
}
Answer ncclScatter(const void* send, void* receive, std::size_t count, Type type, int root, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::scatter, .send = send, .receive = receive, .count = count, .root = root}, type,
              nullptr, stream);
}
Answer ncclAlltoAll(const void* send, void* receive, std::size_t count, Type type, Comm comm, Stream stream) {
  return call(comm, {.kind = Kind::all_to_all, .send = send, .receive = receive, .count = count}, type, nullptr,
              stream);
}

#endif

}  // namespace tutti::backend_nccl

/// Communicators, ops and registered buffers that were not given back.
TUTTI_EXPORTED int tutti_double_live() {
  using tutti::backend_nccl::Registry;
  const std::lock_guard lock(Registry::get().mutex);
  int live = static_cast<int>(Registry::get().all.size());
  for (const auto& [comm, communicator] : Registry::get().all) {
    live += communicator->live_ops + static_cast<int>(communicator->registered.size());
  }
  return live;
}
