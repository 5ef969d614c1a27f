// SPDX-License-Identifier: Apache-2.0
// What calls of NCCL do, by messages alone: every rank sends what another one needs, and reduces what it was sent, in
// rank order, with tutti's own arithmetic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "impl/reduce/scale.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "suites/backends/doubles/meeting.h"

namespace tutti::doubles {

enum class Kind : std::uint32_t {
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  gather,
  scatter,
  all_to_all,
  send,
  receive
};

/// One call of one rank, with addresses of the device.
struct Operation {
  Kind kind = Kind::send;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::u8;
  Op op = Op::none;
  Factor factor{};  ///< of premul_sum
  int root = 0;     ///< of a send or receive the other rank

  [[nodiscard]] std::size_t bytes() const { return count * size_of(dtype); }
};

/// A rank's part of a communicator, as the items on its streams see it.
struct Seat {
  int rank = 0;
  int ranks = 1;
  int device = 0;
  std::unique_ptr<Meeting> meeting;
  std::mutex turn;  ///< one group of calls at a time
  std::atomic<bool> is_aborted = false;
  std::atomic<bool> has_lost_a_rank = false;
  std::string loss;  ///< written before has_lost_a_rank is set
};

/// Does the calls of one group together. Where ranks disagree, or one is lost, it does not end before an abort, as a
/// kernel that waits.
void perform(Seat& seat, const std::vector<Operation>& group);

}  // namespace tutti::doubles
