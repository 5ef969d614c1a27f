// SPDX-License-Identifier: Apache-2.0
// Exposures, and the race check. A remote access by t to q's memory is right under two conditions. A SIGNAL of q, whose
// phase t has waited for, exposes that memory to t. And t has not yet signalled a later phase to q. It then happens
// between that SIGNAL and q's next WAIT for a later phase of t: an interval of q's program. Within it, q may not write
// what t reads nor touch what t writes. Two targets may touch the same bytes, one of them writing, only if one interval
// ends before the other begins. Memory in scratch needs no closing WAIT, for its generation protects it: its interval
// ends with the program.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/prove/findings.h"
#include "impl/prove/layout.h"

namespace tutti {

class Races {
 public:
  Races(const PlanSet& set, const Layout& layout, Findings& findings);

  [[nodiscard]] bool has_exposures() const { return !exposures_.empty(); }
  [[nodiscard]] bool exposes(int rank) const { return has_exposures() && of_rank(rank) < of_rank(rank + 1); }

  /// One access of a MOVE; `op` is its index in the accessor's plan.
  struct Access {
    int accessor;
    std::uint32_t op;
    int owner;
    Interval interval;
    bool is_write;
  };
  void own(const Access& access);
  /// False, and a finding, where the memory is not exposed to the accessor now.
  bool remote(const Access& access);

  void signalled(int rank, const PlanOp& op);
  void heard(int rank, int peer, int phase, std::uint32_t op);

  /// After the execution: conflicts, and exposures of user buffers that were never closed.
  void finish();

 private:
  static constexpr std::uint32_t kNever = UINT32_MAX;
  struct Open {
    Interval interval;
    int target;
    int phase;
    std::uint32_t op;     ///< the SIGNAL
    std::uint32_t close;  ///< the WAIT
    bool is_write;
  };
  /// An access in the owner's program: its own at [from, from], a remote one somewhere in (from, to).
  struct Event {
    Interval interval;
    int accessor;
    int step;  ///< of the accessor
    std::uint32_t from;
    std::uint32_t exposure;  ///< kNever: the owner's own
    bool is_write;
  };

  void collect(int rank);
  [[nodiscard]] std::uint32_t step_of(int rank, std::uint32_t op) const {
    return plans_[static_cast<std::size_t>(rank)].ops()[op].step;
  }
  [[nodiscard]] std::size_t pair(int owner, int target) const {
    return static_cast<std::size_t>(owner) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(target);
  }
  [[nodiscard]] std::size_t of_rank(int rank) const { return first_[pair(rank, 0)]; }
  [[nodiscard]] bool is_open_to(const Open& exposure, std::size_t pair_index) const {
    return exposure.phase <= waited_[pair_index] && exposure.phase >= signalled_[pair_index];
  }
  [[nodiscard]] bool conflict(const Event& a, const Event& b) const;
  void check_owner(int owner, std::vector<Event>& events);
  void report(int owner, const Event& a, const Event& b);
  void refuse(const Access& access);

  std::span<const Plan> plans_;
  const Layout& layout_;
  Findings& findings_;
  int ranks_;
  std::vector<Open> exposures_;             ///< by owner, then target
  std::vector<std::size_t> first_;          ///< [owner][target]: the first of this pair; one entry more at the end
  std::vector<std::uint16_t> waited_;       ///< [owner][target]: last phase of the owner that the target has waited for
  std::vector<std::uint16_t> signalled_;    ///< [owner][target]: last phase that the target has signalled to the owner
  std::vector<std::vector<Event>> events_;  ///< per owner
};

}  // namespace tutti
