// SPDX-License-Identifier: Apache-2.0
// How the hosts of a job hear of each other. Each writes its own lines and its own page of a board, and polls those of
// the others on the board that it has. Where all hosts share one board that is all. Where they do not, an Exchange
// brings what a host has written to the others' boards: each of them mirrors all others.
#pragma once

#include <cstdint>

#include "harness/launch/board.h"

namespace tutti::harness::measure {

class Exchange {
 public:
  /// What a host writes: its page of records, its line of starts and barriers, its line of probes.
  enum class Part : std::uint8_t { page, sync, probe };

  virtual ~Exchange() = default;
  /// `host`, which calls it, has written that part of its board: the others are to see it, in the order of the calls.
  virtual void tell(const Board& board, int host, Part part) = 0;
  /// Puts what the others have told on this host's board, without waiting. Called in waiting loops, if it is needed.
  virtual void look(const Board& board) = 0;
  [[nodiscard]] virtual bool needs_look() const = 0;
  /// Whether the job was given up. Called now and then, in every waiting loop.
  [[nodiscard]] virtual bool is_aborted(const Board& board) const = 0;
};

/// That of hosts which share one board.
[[nodiscard]] Exchange& shared_board();

}  // namespace tutti::harness::measure
