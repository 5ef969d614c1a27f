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
#include <cstring>
#include <iterator>

#include "suites/backends/doubles/memory.h"
#include "suites/backends/doubles/nccl_communicator.h"

namespace tutti::backend_nccl {
namespace {

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
    if (open_group().depth > 0 && open_group().error == kSuccess) open_group().error = answer;
    return answer;
  }
  if (what.count == 0 && what.kind != Kind::send && what.kind != Kind::receive) return kSuccess;
  if (open_group().depth == 0) return launch(communicator, stream, {what});
  open_group().calls.push_back({.communicator = communicator, .what = what, .stream = stream});
  return kSuccess;
}

}  // namespace

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
  if (open_group().depth > 0) {
    open_group().joining.push_back(communicator);
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
