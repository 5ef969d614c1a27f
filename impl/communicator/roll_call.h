// SPDX-License-Identifier: Apache-2.0
// What the ranks of a domain tell each other over the host's memory where they have no other way yet: one thing after
// the other, each of which all ranks tell and all hear. It lies in the scratch of generation 0, so nothing else of the
// domain may use that: its collectives run elsewhere, on GPUs.
//
// There are two places for each rank, used in turns. Who tells thing n + 2 has heard n + 1 of all, so all have copied
// n.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "impl/transports/domain.h"

namespace tutti {

template <class Record>
class RollCall {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  /// Requires: the domain is zeroed, and this the rank's first one on it. The domain outlives it.
  RollCall(Domain& domain, int rank) : domain_(domain), rank_(rank), all_(static_cast<std::size_t>(ranks())) {
    TUTTI_ASSERT(2 * sizeof(Told) <= domain.shape().scratch_bytes, "scratch of {} bytes", domain.shape().scratch_bytes);
  }

  /// Tells the next thing. Requires: the one before was heard.
  void tell(const Record& record) {
    ++number_;
    heard_ = 0;
    Told& mine = told_by(rank_);
    std::memcpy(static_cast<void*>(&mine.record), &record, sizeof record);
    mine.number.store(number_, std::memory_order_release);
  }

  /// Whether all have told theirs. From then on `all` has them.
  [[nodiscard]] bool is_heard() {
    for (; heard_ < ranks(); ++heard_) {
      Told& theirs = told_by(heard_);
      if (theirs.number.load(std::memory_order_acquire) != number_) return false;
      std::memcpy(static_cast<void*>(&all_[static_cast<std::size_t>(heard_)]), &theirs.record, sizeof(Record));
    }
    return true;
  }
  [[nodiscard]] const std::vector<Record>& all() const { return all_; }  ///< [rank]
  /// The first that has not told yet.
  [[nodiscard]] int awaited() const { return heard_; }

 private:
  struct Told {
    std::atomic<std::uint64_t> number;
    Record record;
  };

  [[nodiscard]] int ranks() const { return domain_.shape().ranks; }
  [[nodiscard]] Told& told_by(int rank) const {
    return reinterpret_cast<Told*>(domain_.seat(rank).scratch)[number_ % 2];
  }

  Domain& domain_;
  int rank_;
  std::uint64_t number_ = 0;
  int heard_ = 0;  // ranks
  std::vector<Record> all_;
};

}  // namespace tutti
