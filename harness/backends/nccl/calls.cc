// SPDX-License-Identifier: Apache-2.0
// A call of NCCL returns when it is on the stream. What NCCL has no function for is a group of its sends and receives,
// or of broadcasts or reduces, as its users write it.
#include "harness/backends/nccl/calls.h"

namespace tutti::backend_nccl {
namespace {

Answer broadcast(const Prepared& p) {
  return p.nccl->ncclBroadcast(p.send, p.receive, p.count, p.type, p.root, p.group->comm, p.stream);
}
Answer reduce(const Prepared& p) {
  return p.nccl->ncclReduce(p.send, p.receive, p.count, p.type, p.op, p.root, p.group->comm, p.stream);
}
Answer all_reduce(const Prepared& p) {
  return p.nccl->ncclAllReduce(p.send, p.receive, p.count, p.type, p.op, p.group->comm, p.stream);
}
Answer all_gather(const Prepared& p) {
  return p.nccl->ncclAllGather(p.send, p.receive, p.count, p.type, p.group->comm, p.stream);
}
Answer reduce_scatter(const Prepared& p) {
  return p.nccl->ncclReduceScatter(p.send, p.receive, p.count, p.type, p.op, p.group->comm, p.stream);
}

/// NCCL has no barrier: a reduction of one element that no rank looks at is left out by none.
Answer barrier(const Prepared& p) {
  return p.nccl->ncclAllReduce(p.group->spare, p.group->spare, 1, kInt32, kMax, p.group->comm, p.stream);
}

Answer send(const Prepared& p) { return send_to(p, p.root, p.send, p.count); }
Answer receive(const Prepared& p) { return receive_from(p, p.root, p.receive, p.count); }

// Messages between a root and all, or all and all. Those of no element are left out, by both ranks.

/// The block of a rank in a divided buffer.
Block block_of(const Prepared& p, const std::vector<Block>& blocks, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return blocks.empty() ? Block{.count = p.count, .offset_bytes = at * p.bytes()} : blocks[at];
}

template <class Each>
Answer for_each_rank(const Prepared& p, Each each) {
  Answer answer = kSuccess;
  for (int rank = 0; rank < p.group->ranks && answer == kSuccess; ++rank) {
    answer = each(rank);
  }
  return answer;
}

/// Whether the root's message to itself would copy a block onto itself.
bool stays(const Prepared& p, int peer, const std::byte* from, const std::byte* to) {
  return peer == p.group->rank && from == to;
}

Answer gather_by_messages(const Prepared& p) {
  return together(p, [&p] {
    const bool is_root = p.group->rank == p.root;
    const Block own = block_of(p, p.receive_blocks, p.group->rank);
    if (own.count > 0 && !(is_root && stays(p, p.root, p.send, p.receive + own.offset_bytes))) {
      if (const Answer answer = send_to(p, p.root, p.send, own.count); answer != kSuccess) return answer;
    }
    if (!is_root) return kSuccess;
    return for_each_rank(p, [&p](int rank) {
      const auto [count, offset] = block_of(p, p.receive_blocks, rank);
      if (count == 0 || stays(p, rank, p.send, p.receive + offset)) return kSuccess;
      return receive_from(p, rank, p.receive + offset, count);
    });
  });
}

Answer scatter_by_messages(const Prepared& p) {
  return together(p, [&p] {
    const bool is_root = p.group->rank == p.root;
    const Block own = block_of(p, p.send_blocks, p.group->rank);
    if (own.count > 0 && !(is_root && stays(p, p.root, p.send + own.offset_bytes, p.receive))) {
      if (const Answer answer = receive_from(p, p.root, p.receive, own.count); answer != kSuccess) return answer;
    }
    if (!is_root) return kSuccess;
    return for_each_rank(p, [&p](int rank) {
      const auto [count, offset] = block_of(p, p.send_blocks, rank);
      if (count == 0 || stays(p, rank, p.send + offset, p.receive)) return kSuccess;
      return send_to(p, rank, p.send + offset, count);
    });
  });
}

Answer all_to_all_by_messages(const Prepared& p) {
  return together(p, [&p] {
    return for_each_rank(p, [&p](int rank) {
      const Block out = block_of(p, p.send_blocks, rank);
      if (out.count > 0) {
        const Answer answer = send_to(p, rank, p.send + out.offset_bytes, out.count);
        if (answer != kSuccess) return answer;
      }
      const Block in = block_of(p, p.receive_blocks, rank);
      return in.count == 0 ? kSuccess : receive_from(p, rank, p.receive + in.offset_bytes, in.count);
    });
  });
}

Answer gather(const Prepared& p) {
  if (p.nccl->ncclGather == nullptr) return gather_by_messages(p);
  return p.nccl->ncclGather(p.send, p.receive, p.count, p.type, p.root, p.group->comm, p.stream);
}
Answer scatter(const Prepared& p) {
  if (p.nccl->ncclScatter == nullptr) return scatter_by_messages(p);
  return p.nccl->ncclScatter(p.send, p.receive, p.count, p.type, p.root, p.group->comm, p.stream);
}
Answer all_to_all(const Prepared& p) {
  if (p.nccl->ncclAlltoAll == nullptr) return all_to_all_by_messages(p);
  return p.nccl->ncclAlltoAll(p.send, p.receive, p.count, p.type, p.group->comm, p.stream);
}

/// Block b is broadcast by rank b.
Answer all_gather_v(const Prepared& p) {
  return together(p, [&p] {
    return for_each_rank(p, [&p](int rank) {
      const auto [count, offset] = block_of(p, p.receive_blocks, rank);
      if (count == 0) return kSuccess;
      std::byte* const to = p.receive + offset;
      const std::byte* const from = rank == p.group->rank ? p.send : to;
      return p.nccl->ncclBroadcast(from, to, count, p.type, rank, p.group->comm, p.stream);
    });
  });
}

/// Block b is reduced to rank b.
Answer reduce_scatter_v(const Prepared& p) {
  return together(p, [&p] {
    return for_each_rank(p, [&p](int rank) {
      const auto [count, offset] = block_of(p, p.send_blocks, rank);
      if (count == 0) return kSuccess;
      return p.nccl->ncclReduce(p.send + offset, p.receive, count, p.type, p.op, rank, p.group->comm, p.stream);
    });
  });
}

constexpr Row kRows[] = {{.name = "broadcast", .function = broadcast},
                         {.name = "reduce", .function = reduce, .reduces = true},
                         {.name = "all_reduce", .function = all_reduce, .reduces = true},
                         {.name = "gather", .function = gather},
                         {.name = "all_gather", .function = all_gather},
                         {.name = "scatter", .function = scatter},
                         {.name = "reduce_scatter", .function = reduce_scatter, .reduces = true},
                         {.name = "all_to_all", .function = all_to_all, .overwrites = true},
                         {.name = "sendrecv", .function = sendrecv, .overwrites = true},
                         {.name = "pingpong", .function = pingpong, .answers = true},
                         {.name = "bandwidth", .function = one_window, .answers = true},
                         {.name = "bibandwidth", .function = both_windows, .overwrites = true, .answers = true},
                         {.name = "message_rate", .function = one_window, .answers = true},
                         {.name = "barrier", .function = barrier},
                         {.name = "gather_v", .function = gather_by_messages},
                         {.name = "all_gather_v", .function = all_gather_v},
                         {.name = "scatter_v", .function = scatter_by_messages},
                         {.name = "reduce_scatter_v", .function = reduce_scatter_v, .reduces = true},
                         {.name = "all_to_all_v", .function = all_to_all_by_messages, .overwrites = true},
                         {.name = "send", .function = send},
                         {.name = "recv", .function = receive}};

}  // namespace

const Row* find_row(std::string_view collective) {
  for (const Row& row : kRows) {
    if (row.name == collective) return &row;
  }
  return nullptr;
}

std::string row_names() {
  std::string names;
  for (const Row& row : kRows) names.append(names.empty() ? "" : " ").append(row.name);
  return names;
}

}  // namespace tutti::backend_nccl
