// SPDX-License-Identifier: Apache-2.0
// A schedule followed without numbers: which inputs each rank holds after each round, and what travels between ranks.
//
// Rounds are those of one port. A rank sends at most one message and receives at most one in a round. A MOVE that reads
// other ranks' memory takes a round, and one that stores to it takes another.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/floors.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::draw {

inline constexpr int kMostDrawn = 16;  ///< ranks in a space-time picture

/// The ranks of a value: bit r is rank r.
using RankBits = std::uint32_t;
[[nodiscard]] constexpr RankBits bit_of(int rank) { return RankBits{1} << static_cast<unsigned>(rank); }

/// One unit of the inputs, added up over some ranks. In a barrier: which ranks are known to have entered.
struct Part {
  int unit = -1;  ///< of the givers' inputs; -1: nothing is there
  RankBits ranks = 0;

  [[nodiscard]] bool is_empty() const { return unit < 0; }
  bool operator==(const Part&) const = default;
};
using Parts = std::vector<Part>;

enum class TransferKind : std::uint8_t { message, read, store, flag };

/// Something that goes from one rank to another, between two columns of the picture.
struct Transfer {
  int from = 0;
  int to = 0;
  int sent = 0;      ///< rounds that the sender has behind it
  int received = 0;  ///< rounds that the receiver has behind it then
  TransferKind kind = TransferKind::message;
  Parts parts;
};

/// Ranks that all wait for each other, `first` to `last`, after `round` rounds.
struct MutualWait {
  int round = 0;
  int first = 0;
  int last = 0;

  bool operator==(const MutualWait&) const = default;
};

/// What a rank has read and added up, and not yet stored or sent.
struct InHand {
  int round = 0;
  int rank = 0;
  Parts parts;
};

struct Story {
  Problem problem;
  int units = 1;  ///< of a block
  int rounds = 0;
  std::vector<Parts> given;              ///< [rank]: its input
  std::vector<std::vector<Parts>> held;  ///< [rounds behind][rank]: its output
  std::vector<Transfer> transfers;       ///< in the order of `sent`
  std::vector<MutualWait> mutual_waits;
  std::vector<InHand> in_hand;

  [[nodiscard]] const Parts& held_by(int rank, int round) const {
    return held[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)];
  }
};

/// Whether `part` is what the collective asks for in unit `unit` of the output of `rank`.
[[nodiscard]] bool is_done(const Story& story, int rank, int unit, const Part& part);

/// Requires: at most kMostDrawn ranks. Errors: refuted if a rank never gets on.
[[nodiscard]] Result<Story> story_of(const Schedule& schedule);

}  // namespace tutti::harness::draw
