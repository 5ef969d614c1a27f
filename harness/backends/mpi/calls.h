// SPDX-License-Identifier: Apache-2.0
// The calls that MPI has: for each one function that blocks and one that only starts it, and what they are called with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

namespace tutti::backend_mpi {

/// A communicator, and this rank's seat in it.
struct Group {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 1;
};

struct Prepared;
/// Returns MPI's code.
using Function = int (*)(Prepared&);

/// The arguments of one MPI call, and of one that was started what is not complete.
struct Prepared {
  Function function = nullptr;
  Group group;
  const void* send = nullptr;
  void* receive = nullptr;
  int count = 0;
  int root = 0;  ///< of a send or receive the other rank
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  // v forms
  std::vector<int> send_counts, send_displacements, receive_counts, receive_displacements;
  // collectives of pairs
  int partner = -1;  ///< -1: none
  int window = 0;
  std::size_t message_bytes = 0;
  std::vector<MPI_Request> window_requests;
  bool is_one_pair = false;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

/// Which ranks pass MPI_IN_PLACE, and in place of what. With `same_buffer` no rank does. With `overwritten` a rank
/// would receive into what it has still to send.
enum class InPlace { send, send_at_root, receive_at_root, one_buffer, same_buffer, refused, overwritten };

/// A row per call.
struct Row {
  std::string_view name;
  Function blocking;
  Function nonblocking;  ///< null: MPI has none, or this one's is broken
  bool reduces;
  InPlace in_place;
};

/// The rank that a rank of the group exchanges messages with in a collective of pairs; -1: no rank.
[[nodiscard]] int partner_in(std::string_view collective, const Group& group);

/// Null where MPI has no such call. One buffer for both is a call of its own where MPI has one for it.
[[nodiscard]] const Row* find_row(std::string_view collective, bool is_in_place);
/// The names of all rows, with blanks between them.
[[nodiscard]] std::string row_names();

}  // namespace tutti::backend_mpi
