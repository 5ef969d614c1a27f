// SPDX-License-Identifier: Apache-2.0
// SIGNALs and WAITs matched one to one. At run time a flag is one word per rank and a WAIT is content with any phase
// not below its own. That would hide a dropped or misdirected SIGNAL, which works on shared memory and hangs over
// messages. Here a WAIT for phase n of q by t is satisfied by the one SIGNAL n of q whose set contains t, and by
// nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "impl/prove/findings.h"

namespace tutti {

class Signals {
 public:
  Signals(std::span<const Plan> plans, Findings& findings);

  static constexpr std::size_t kNone = SIZE_MAX;

  /// The id of rank's SIGNAL of this phase; ids count up over ranks and their programs.
  [[nodiscard]] std::size_t id_of(int rank, int phase) const;
  /// The id of the SIGNAL that this WAIT of `rank` for `peer` waits for; kNone and a finding where there is none.
  [[nodiscard]] std::size_t expected(int rank, const PlanOp& wait, int peer);
  /// The index of the SIGNAL in its rank's plan.
  [[nodiscard]] std::uint32_t op_of(std::size_t id) const { return signals_[id].op; }
  /// `rank` goes on after a WAIT for SIGNAL `id` of `peer`.
  void heard(int rank, const PlanOp& wait, int peer, std::size_t id);

  /// At the end: SIGNALs that somebody never waited for.
  void report_left_over();

 private:
  struct Signal {
    std::uint32_t op;
    int phase;
    RankSet ranks;
    int matched = 0;
  };

  [[nodiscard]] const Plan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  void collect(int rank);
  [[nodiscard]] bool waits_for(int rank, int peer, int phase) const;

  std::span<const Plan> plans_;
  Findings& findings_;
  int ranks_;
  std::vector<Signal> signals_;        ///< by rank, in program order
  std::vector<std::size_t> first_;     ///< of each rank
  std::vector<std::uint16_t> waited_;  ///< [rank][peer]: last phase
  std::int64_t pairs_ = 0;             ///< of a SIGNAL and a rank of its set
  std::int64_t matched_ = 0;
};

}  // namespace tutti
