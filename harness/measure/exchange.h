// SPDX-License-Identifier: Apache-2.0
// How the runners of a job hear of each other. Each writes its own lines and its own page of a board, and polls those
// of the others on the board that it has. Where all runners share one board that is all. Where they do not, an Exchange
// brings what a runner has written to the others' boards: each of them mirrors all others.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/board/board.h"
#include "harness/measure/runner_clock.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// One question for another machine's clock: readings of this one around it.
struct ClockTrip {
  std::int64_t asked_ns = 0;
  std::int64_t there_ns = 0;
  std::int64_t heard_ns = 0;
  [[nodiscard]] std::int64_t round_ns() const { return heard_ns - asked_ns; }
};

class Exchange {
 public:
  /// What a runner writes: its page of records, its line of starts and barriers, its line of probes.
  enum class Part : std::uint8_t { page, sync, probe };

  virtual ~Exchange() = default;
  /// `runner`, which calls it, has written that part of its board: the others are to see it, in the order of the calls.
  virtual void tell(const Board& board, int runner, Part part) = 0;
  /// Puts what the others have told on this runner's board, without waiting. Called in waiting loops, if it is needed.
  virtual void look(const Board& board) = 0;
  [[nodiscard]] virtual bool needs_look() const = 0;
  /// The board on which a runner sees what another one has written.
  [[nodiscard]] virtual Board seen(const Board& board, int /*runner*/) const { return board; }
  /// By runner, the machine that it runs on; empty: one has them all.
  [[nodiscard]] virtual const std::vector<int>& machines() const;
  /// Asks a runner of another machine for its reading of its clock, and waits for it. Errors: timeout, aborted.
  [[nodiscard]] virtual Result<ClockTrip> ask_clock(int runner, const RunnerClock& mine, const Board& board);
  /// What others are told who ask this runner for its clock. It outlives the exchange, or is replaced.
  virtual void answer_clock(const RunnerClock* /*mine*/) {}
  /// Why nothing more comes from another runner, where that is known. Asked in every waiting loop, now and then.
  [[nodiscard]] virtual const Status& failure() const;
  /// Whether the job was given up. Called now and then, in every waiting loop.
  [[nodiscard]] virtual bool is_aborted(const Board& board) const = 0;
};

/// That of runners which share one board.
[[nodiscard]] Exchange& shared_board();

}  // namespace tutti::harness::measure
