// SPDX-License-Identifier: Apache-2.0
// The double of NCCL: communicators, how ranks join and leave them, and groups of calls.
#include "suites/backends/doubles/nccl_communicator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

namespace tutti::backend_nccl {

namespace {
constexpr auto kPause = std::chrono::microseconds(100);
}  // namespace

std::string& last_error() {
  thread_local std::string text;
  return text;
}

OpenGroup& open_group() {
  thread_local OpenGroup group;
  return group;
}

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

namespace {

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

}  // namespace

Answer launch(const std::shared_ptr<Communicator>& communicator, Stream stream, std::vector<Operation> calls) {
  if (blocks()) return put(communicator->seat, stream, std::move(calls));
  const std::lock_guard lock(Registry::get().mutex);
  communicator->tasks.push_back([seat = communicator->seat, stream, calls = std::move(calls), questions = 3]() mutable {
    return --questions == 0 && put(seat, stream, std::move(calls)) == kSuccess;
  });
  return kInProgress;
}

namespace {

Answer end_group() {
  const OpenGroup ended = std::exchange(open_group(), OpenGroup());
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

// Joining

/// When all are there: that each has a GPU of its own, or that NCCL of this version was told that they share.
bool check_devices(Communicator& communicator) {
  constexpr int kFirstThatShares = 23000;
  if (version() >= kFirstThatShares && doubles::number_of("NCCL_MULTI_RANK_GPU_ENABLE", 0) != 0) return true;
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

const char* ncclGetLastError(Comm /*comm*/) { return last_error().c_str(); }

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
  if (open_group().depth > 0) {
    open_group().joining.push_back(made);
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
  if (open_group().depth > 0) {
    open_group().joining.push_back(whole);
    open_group().parts.push_back(made);
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
  ++open_group().depth;
  return kSuccess;
}
Answer ncclGroupEnd() {
  if (open_group().depth == 0) return fail(kInvalidUsage, "no group was started");
  if (--open_group().depth > 0) return kSuccess;
  return end_group();
}

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
