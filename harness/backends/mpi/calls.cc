// SPDX-License-Identifier: Apache-2.0
// A function of MPI and its nonblocking form take the same arguments, which therefore stand here once. Blocks says
// which of the two is compiled. So what is timed is the blocking function and nothing else.
#include "harness/backends/mpi/calls.h"

namespace tutti::backend_mpi {
namespace {

template <bool Blocks, class Blocking, class Nonblocking, class... Arguments>
int call(Prepared& p, Blocking* blocking, Nonblocking* nonblocking, Arguments... arguments) {
  if constexpr (Blocks) return blocking(arguments...);
  return nonblocking(arguments..., &p.requests[0]);
}

template <bool Blocks>
int broadcast(Prepared& p) {
  return call<Blocks>(p, MPI_Bcast, MPI_Ibcast, p.receive, p.count, p.type, p.root, p.group.communicator);
}
template <bool Blocks>
int reduce(Prepared& p) {
  return call<Blocks>(p, MPI_Reduce, MPI_Ireduce, p.send, p.receive, p.count, p.type, p.op, p.root,
                      p.group.communicator);
}
template <bool Blocks>
int all_reduce(Prepared& p) {
  return call<Blocks>(p, MPI_Allreduce, MPI_Iallreduce, p.send, p.receive, p.count, p.type, p.op, p.group.communicator);
}
template <bool Blocks>
int gather(Prepared& p) {
  return call<Blocks>(p, MPI_Gather, MPI_Igather, p.send, p.count, p.type, p.receive, p.count, p.type, p.root,
                      p.group.communicator);
}
template <bool Blocks>
int all_gather(Prepared& p) {
  return call<Blocks>(p, MPI_Allgather, MPI_Iallgather, p.send, p.count, p.type, p.receive, p.count, p.type,
                      p.group.communicator);
}
template <bool Blocks>
int scatter(Prepared& p) {
  return call<Blocks>(p, MPI_Scatter, MPI_Iscatter, p.send, p.count, p.type, p.receive, p.count, p.type, p.root,
                      p.group.communicator);
}
template <bool Blocks>
int reduce_scatter(Prepared& p) {
  return call<Blocks>(p, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, p.send, p.receive, p.count, p.type, p.op,
                      p.group.communicator);
}
template <bool Blocks>
int all_to_all(Prepared& p) {
  return call<Blocks>(p, MPI_Alltoall, MPI_Ialltoall, p.send, p.count, p.type, p.receive, p.count, p.type,
                      p.group.communicator);
}
template <bool Blocks>
int gather_v(Prepared& p) {
  return call<Blocks>(p, MPI_Gatherv, MPI_Igatherv, p.send, p.count, p.type, p.receive, p.receive_counts.data(),
                      p.receive_displacements.data(), p.type, p.root, p.group.communicator);
}
template <bool Blocks>
int all_gather_v(Prepared& p) {
  return call<Blocks>(p, MPI_Allgatherv, MPI_Iallgatherv, p.send, p.count, p.type, p.receive, p.receive_counts.data(),
                      p.receive_displacements.data(), p.type, p.group.communicator);
}
template <bool Blocks>
int scatter_v(Prepared& p) {
  return call<Blocks>(p, MPI_Scatterv, MPI_Iscatterv, p.send, p.send_counts.data(), p.send_displacements.data(), p.type,
                      p.receive, p.count, p.type, p.root, p.group.communicator);
}
template <bool Blocks>
int reduce_scatter_v(Prepared& p) {
  return call<Blocks>(p, MPI_Reduce_scatter, MPI_Ireduce_scatter, p.send, p.receive, p.send_counts.data(), p.type, p.op,
                      p.group.communicator);
}
template <bool Blocks>
int all_to_all_v(Prepared& p) {
  return call<Blocks>(p, MPI_Alltoallv, MPI_Ialltoallv, p.send, p.send_counts.data(), p.send_displacements.data(),
                      p.type, p.receive, p.receive_counts.data(), p.receive_displacements.data(), p.type,
                      p.group.communicator);
}
template <bool Blocks>
int scan(Prepared& p) {
  return call<Blocks>(p, MPI_Scan, MPI_Iscan, p.send, p.receive, p.count, p.type, p.op, p.group.communicator);
}
template <bool Blocks>
int exscan(Prepared& p) {
  return call<Blocks>(p, MPI_Exscan, MPI_Iexscan, p.send, p.receive, p.count, p.type, p.op, p.group.communicator);
}
template <bool Blocks>
int barrier(Prepared& p) {
  return call<Blocks>(p, MPI_Barrier, MPI_Ibarrier, p.group.communicator);
}

template <bool Blocks>
int send(Prepared& p) {
  return call<Blocks>(p, MPI_Send, MPI_Isend, p.send, p.count, p.type, p.root, 0, p.group.communicator);
}
int receive(Prepared& p) {
  return MPI_Recv(p.receive, p.count, p.type, p.root, 0, p.group.communicator, MPI_STATUS_IGNORE);
}
int start_receive(Prepared& p) {
  return MPI_Irecv(p.receive, p.count, p.type, p.root, 0, p.group.communicator, &p.requests[0]);
}

/// The ring: each rank to the next one.
int next(const Group& group) { return (group.rank + 1) % group.ranks; }
int previous(const Group& group) { return (group.rank + group.ranks - 1) % group.ranks; }

int sendrecv(Prepared& p) {
  return MPI_Sendrecv(p.send, p.count, p.type, next(p.group), 0, p.receive, p.count, p.type, previous(p.group), 0,
                      p.group.communicator, MPI_STATUS_IGNORE);
}
int start_sendrecv(Prepared& p) {
  const MPI_Comm all = p.group.communicator;
  const int code = MPI_Irecv(p.receive, p.count, p.type, previous(p.group), 0, all, &p.requests[0]);
  if (code != MPI_SUCCESS) return code;
  return MPI_Isend(p.send, p.count, p.type, next(p.group), 0, all, &p.requests[1]);
}
int sendrecv_in_place(Prepared& p) {
  return MPI_Sendrecv_replace(p.receive, p.count, p.type, next(p.group), 0, previous(p.group), 0, p.group.communicator,
                              MPI_STATUS_IGNORE);
}

/// Even ranks with the next one, unless one pair plays alone; the last of an odd number with itself, so that its input
/// is copied too.
int pingpong(Prepared& p) {
  const int rank = p.group.rank;
  const MPI_Comm all = p.group.communicator;
  const int other = p.partner;
  if (other < 0) {
    if (p.is_one_pair || p.send == p.receive) return MPI_SUCCESS;
    return MPI_Sendrecv(p.send, p.count, p.type, rank, 0, p.receive, p.count, p.type, rank, 0, all, MPI_STATUS_IGNORE);
  }
  if (rank < other) {
    const int code = MPI_Send(p.send, p.count, p.type, other, 0, all);
    return code != MPI_SUCCESS ? code : MPI_Recv(p.receive, p.count, p.type, other, 0, all, MPI_STATUS_IGNORE);
  }
  const int code = MPI_Recv(p.receive, p.count, p.type, other, 0, all, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS ? code : MPI_Send(p.receive, p.count, p.type, other, 0, all);
}

/// Starts a window of sends or receives, whose requests begin at `first`.
int start_sends(Prepared& p, std::size_t first) {
  const auto* at = static_cast<const std::byte*>(p.send);
  int code = MPI_SUCCESS;
  for (int message = 0; code == MPI_SUCCESS && message < p.window; ++message, at += p.message_bytes) {
    code = MPI_Isend(at, p.count, p.type, p.partner, 0, p.group.communicator,
                     &p.window_requests[first + static_cast<std::size_t>(message)]);
  }
  return code;
}
int start_receives(Prepared& p, std::size_t first) {
  auto* at = static_cast<std::byte*>(p.receive);
  int code = MPI_SUCCESS;
  for (int message = 0; code == MPI_SUCCESS && message < p.window; ++message, at += p.message_bytes) {
    code = MPI_Irecv(at, p.count, p.type, p.partner, 0, p.group.communicator,
                     &p.window_requests[first + static_cast<std::size_t>(message)]);
  }
  return code;
}
int wait_for_windows(Prepared& p, int windows) {
  return MPI_Waitall(windows * p.window, p.window_requests.data(), MPI_STATUSES_IGNORE);
}

constexpr int kAcknowledgement = 1;  // its tag; it has no bytes

// A library may still owe the sender a control message when the receiver's MPI_Waitall returns, and sends it in a later
// call only. Open MPI's rendezvous over shared memory does. A rank that then left MPI would keep its partner waiting
// for ever. So a receiver stays in MPI until its partner has completed its sends.

/// The lower rank of a pair sends a window, the other one acknowledges when it has arrived.
int one_window(Prepared& p) {
  const MPI_Comm all = p.group.communicator;
  if (p.partner < 0) return MPI_SUCCESS;
  if (p.group.rank < p.partner) {
    if (const int code = start_sends(p, 0); code != MPI_SUCCESS) return code;
    if (const int code = wait_for_windows(p, 1); code != MPI_SUCCESS) return code;
    return MPI_Recv(nullptr, 0, MPI_BYTE, p.partner, kAcknowledgement, all, MPI_STATUS_IGNORE);
  }
  if (const int code = start_receives(p, 0); code != MPI_SUCCESS) return code;
  if (const int code = wait_for_windows(p, 1); code != MPI_SUCCESS) return code;
  return MPI_Ssend(nullptr, 0, MPI_BYTE, p.partner, kAcknowledgement, all);
}

int both_windows(Prepared& p) {
  if (p.partner < 0) return MPI_SUCCESS;
  if (const int code = start_receives(p, 0); code != MPI_SUCCESS) return code;
  if (const int code = start_sends(p, static_cast<std::size_t>(p.window)); code != MPI_SUCCESS) return code;
  if (const int code = wait_for_windows(p, 2); code != MPI_SUCCESS) return code;
  return MPI_Sendrecv(nullptr, 0, MPI_BYTE, p.partner, kAcknowledgement, nullptr, 0, MPI_BYTE, p.partner,
                      kAcknowledgement, p.group.communicator, MPI_STATUS_IGNORE);
}

constexpr Row kRows[] = {{"broadcast", broadcast<true>, broadcast<false>, false, InPlace::one_buffer},
                         {"reduce", reduce<true>, reduce<false>, true, InPlace::send_at_root},
                         {"all_reduce", all_reduce<true>, all_reduce<false>, true, InPlace::send},
                         {"gather", gather<true>, gather<false>, false, InPlace::send_at_root},
                         {"all_gather", all_gather<true>, all_gather<false>, false, InPlace::send},
                         {"scatter", scatter<true>, scatter<false>, false, InPlace::receive_at_root},
                         {"reduce_scatter", reduce_scatter<true>, reduce_scatter<false>, true, InPlace::refused},
                         {"all_to_all", all_to_all<true>, all_to_all<false>, false, InPlace::send},
                         {"sendrecv", sendrecv, start_sendrecv, false, InPlace::same_buffer},
                         {"pingpong", pingpong, nullptr, false, InPlace::same_buffer},
                         {"bandwidth", one_window, nullptr, false, InPlace::same_buffer},
                         {"bibandwidth", both_windows, nullptr, false, InPlace::overwritten},
                         {"message_rate", one_window, nullptr, false, InPlace::same_buffer},
                         {"barrier", barrier<true>, barrier<false>, false, InPlace::same_buffer},
                         {"gather_v", gather_v<true>, gather_v<false>, false, InPlace::send_at_root},
                         {"all_gather_v", all_gather_v<true>, all_gather_v<false>, false, InPlace::send},
                         {"scatter_v", scatter_v<true>, scatter_v<false>, false, InPlace::receive_at_root},
                         {"reduce_scatter_v", reduce_scatter_v<true>, reduce_scatter_v<false>, true, InPlace::refused},
                         {"all_to_all_v", all_to_all_v<true>, all_to_all_v<false>, false, InPlace::send},
                         {"scan", scan<true>, scan<false>, true, InPlace::send},
                         {"exscan", exscan<true>, exscan<false>, true, InPlace::send},
                         {"send", send<true>, send<false>, false, InPlace::same_buffer},
                         {"recv", receive, start_receive, false, InPlace::same_buffer}};

// Before its version 5, Open MPI's MPI_Ialltoallv in place reckons with an extent that was never set (its issue 9749).
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
constexpr Function kAllToAllVInPlace = nullptr;
#else
constexpr Function kAllToAllVInPlace = all_to_all_v<false>;
#endif

/// In place other functions, or none.
constexpr Row kInPlaceRows[] = {{"sendrecv", sendrecv_in_place, nullptr, false, InPlace::same_buffer},
                                {"all_to_all_v", all_to_all_v<true>, kAllToAllVInPlace, false, InPlace::send}};

}  // namespace

int partner_in(std::string_view collective, const Group& group) {
  const int rank = group.rank, pairs = group.ranks / 2;
  if (collective == "message_rate") return rank >= 2 * pairs ? -1 : rank < pairs ? rank + pairs : rank - pairs;
  const int other = rank % 2 == 0 ? rank + 1 : rank - 1;
  return other < group.ranks ? other : -1;
}

const Row* find_row(std::string_view collective, bool is_in_place) {
  for (const Row& row : kInPlaceRows) {
    if (is_in_place && row.name == collective) return &row;
  }
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

}  // namespace tutti::backend_mpi
