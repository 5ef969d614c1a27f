// SPDX-License-Identifier: Apache-2.0
// A call of oneCCL returns at once with an event. What oneCCL has no function for is made of its sends and receives, as
// its users write it.
#include "harness/backends/oneccl/calls.h"

#include <cstring>

namespace tutti::backend_oneccl {
namespace {

const ccl::communicator& world_of(const Prepared& p) { return p.group->communicator; }

void broadcast(Prepared& p) { p.events.push_back(ccl::broadcast(p.receive, p.count, p.type, p.root, world_of(p))); }
void reduce(Prepared& p) {
  std::byte* const to = p.group->rank() == p.root ? p.receive : nullptr;
  p.events.push_back(ccl::reduce(p.send, to, p.count, p.type, p.op, p.root, world_of(p)));
}
void all_reduce(Prepared& p) {
  p.events.push_back(ccl::allreduce(p.send, p.receive, p.count, p.type, p.op, world_of(p)));
}
void all_gather(Prepared& p) { p.events.push_back(ccl::allgather(p.send, p.receive, p.count, p.type, world_of(p))); }
void all_gather_v(Prepared& p) {
  const std::size_t own = p.receive_counts[static_cast<std::size_t>(p.group->rank())];
  p.events.push_back(ccl::allgatherv(p.send, own, p.receive, p.receive_counts, p.type, world_of(p)));
}
void reduce_scatter(Prepared& p) {
  p.events.push_back(ccl::reduce_scatter(p.send, p.receive, p.count, p.type, p.op, world_of(p)));
}
void all_to_all(Prepared& p) { p.events.push_back(ccl::alltoall(p.send, p.receive, p.count, p.type, world_of(p))); }
void all_to_all_v(Prepared& p) {
  p.events.push_back(ccl::alltoallv(p.send, p.send_counts, p.receive, p.receive_counts, p.type, world_of(p)));
}
void barrier(Prepared& p) { p.events.push_back(ccl::barrier(world_of(p))); }

void deliver(Prepared& receiver, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(receiver.receive, from, bytes);
  receiver.awaits_own_message = false;
}

void send(Prepared& p) {
  Group& group = *p.group;
  if (p.root != group.rank()) return send_to(p, p.root, p.send, p.count);
  if (group.own_receives.empty()) {
    group.own_messages.emplace_back(p.send, p.send + p.bytes());
  } else {
    deliver(*group.own_receives.front(), p.send, p.bytes());
    group.own_receives.pop_front();
  }
}
void receive(Prepared& p) {
  Group& group = *p.group;
  if (p.root != group.rank()) return receive_from(p, p.root, p.receive, p.count);
  if (group.own_messages.empty()) {
    p.awaits_own_message = true;
    group.own_receives.push_back(&p);
  } else {
    deliver(p, group.own_messages.front().data(), group.own_messages.front().size());
    group.own_messages.pop_front();
  }
}

/// The block of a rank in a divided buffer.
Block block_of(const Prepared& p, const std::vector<Block>& blocks, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return blocks.empty() ? Block{.count = p.count, .offset_bytes = at * p.bytes()} : blocks[at];
}

void copy(const Prepared& p, std::byte* to, const std::byte* from, std::size_t count) {
  if (to != from && count > 0) std::memcpy(to, from, count * p.element_bytes);
}

void gather(Prepared& p) {
  const int own = p.group->rank();
  if (own != p.root) return send_to(p, p.root, p.send, block_of(p, p.receive_blocks, own).count);
  for (int rank = 0; rank < p.group->ranks(); ++rank) {
    const auto [count, offset] = block_of(p, p.receive_blocks, rank);
    if (rank == own) {
      copy(p, p.receive + offset, p.send, count);
    } else {
      receive_from(p, rank, p.receive + offset, count);
    }
  }
}

void scatter(Prepared& p) {
  const int own = p.group->rank();
  if (own != p.root) return receive_from(p, p.root, p.receive, block_of(p, p.send_blocks, own).count);
  for (int rank = 0; rank < p.group->ranks(); ++rank) {
    const auto [count, offset] = block_of(p, p.send_blocks, rank);
    if (rank == own) {
      copy(p, p.receive, p.send + offset, count);
    } else {
      send_to(p, rank, p.send + offset, count);
    }
  }
}

constexpr Row kRows[] = {{.name = "broadcast", .first = broadcast},
                         {.name = "reduce", .first = reduce, .reduces = true},
                         {.name = "all_reduce", .first = all_reduce, .reduces = true},
                         {.name = "gather", .first = gather},
                         {.name = "all_gather", .first = all_gather},
                         {.name = "scatter", .first = scatter},
                         {.name = "reduce_scatter", .first = reduce_scatter, .reduces = true},
                         {.name = "all_to_all", .first = all_to_all, .overwrites = true},
                         {.name = "sendrecv", .first = sendrecv, .overwrites = true},
                         {.name = "pingpong", .first = ping, .second = pong},
                         {.name = "bandwidth", .first = one_window, .second = acknowledge},
                         {.name = "bibandwidth", .first = both_windows, .second = acknowledge, .overwrites = true},
                         {.name = "message_rate", .first = one_window, .second = acknowledge},
                         {.name = "barrier", .first = barrier},
                         {.name = "gather_v", .first = gather},
                         {.name = "all_gather_v", .first = all_gather_v},
                         {.name = "scatter_v", .first = scatter},
                         {.name = "all_to_all_v", .first = all_to_all_v, .overwrites = true},
                         {.name = "send", .first = send},
                         {.name = "recv", .first = receive}};

}  // namespace

void send_to(Prepared& p, int peer, const std::byte* from, std::size_t count) {
  if (count > 0) p.events.push_back(ccl::send(const_cast<std::byte*>(from), count, p.type, peer, world_of(p)));
}
void receive_from(Prepared& p, int peer, std::byte* to, std::size_t count) {
  if (count > 0) p.events.push_back(ccl::recv(to, count, p.type, peer, world_of(p)));
}

void Prepared::start() {
  events.clear();
  is_in_second = second == nullptr;
  first(*this);
}

bool Prepared::is_over() {
  events.clear();
  if (is_in_second) return true;
  is_in_second = true;
  second(*this);
  return events.empty();
}

bool Prepared::test() {
  if (awaits_own_message) return false;
  for (ccl::event& event : events) {
    if (!event.test()) return false;
  }
  return is_over();
}

void Prepared::wait() {
  do {
    for (ccl::event& event : events) event.wait();
  } while (!test());
}

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

}  // namespace tutti::backend_oneccl
