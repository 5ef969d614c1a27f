// SPDX-License-Identifier: Apache-2.0
// The mix of a soak: which operations in which order, and on which groups. The mix is a pure function of the seed. So
// every rank, whatever it is run as, makes the same calls, and a seed that fails can be run again. There is every
// collective, every v form, and messages to and from other ranks. Blocks of v forms have lengths by pattern or drawn
// one by one, some of them 0. They lie side by side or anywhere, with gaps, on each rank elsewhere.
//
// A soak is cut into epochs. In each there are the world and three groups that overlap. The groups are the ranks of one
// parity, in reverse (a split); all ranks but one, rotated; and some ranks, shuffled. Between epochs nothing is in
// flight and the groups are made anew.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "harness/verify/oracle.h"
#include "impl/schedule/bind.h"

namespace tutti::harness::soak {

inline constexpr int kSoakEpochs = 4;
inline constexpr int kSoakCommunicators = 4;                ///< the world and three groups
inline constexpr std::int64_t kMostSoakBytes = 128 * 1024;  ///< of one buffer, without gaps
inline constexpr int kMostOwnPlaces = 64;  ///< ranks: beyond them, P x P lengths or places for each operation are many

/// One operation, on all ranks of a group.
struct SoakOperation {
  int communicator = 0;  ///< 0: the world
  /// Each rank sends to the one `shift` after it and receives from the one `shift` before it.
  bool is_exchange = false;
  int shift = 0;
  /// Of an exchange: collective, root, op and blocks do not count, and the lengths are those of exchanged().
  Operation what;
  bool is_in_place = false;
  Buffers buffers = Buffers::private_;
  std::uint64_t algorithm = 0;  ///< which of the collective's, counted round; 0: auto
};

class Mix {
 public:
  Mix(std::uint64_t seed, int ranks, std::int64_t operations) : seed_(seed), ranks_(ranks), operations_(operations) {}

  [[nodiscard]] std::int64_t operations() const { return operations_; }
  /// Operations of the epoch: [first, second).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> epoch(int epoch) const {
    return {operations_ * epoch / kSoakEpochs, operations_ * (epoch + 1) / kSoakEpochs};
  }
  /// Ranks of the world that are in `communicator`, by rank in it; of the split one, those of `rank`'s parity.
  [[nodiscard]] std::vector<int> members(int epoch, int communicator, int rank) const;
  [[nodiscard]] int communicator_at(std::int64_t index) const;
  [[nodiscard]] bool is_barrier(std::int64_t index) const;
  /// Operation `index` on a communicator of `ranks` ranks.
  [[nodiscard]] SoakOperation at(std::int64_t index, int group_ranks) const;
  /// Of all operations and groups.
  [[nodiscard]] std::uint64_t hash() const;

 private:
  /// A number below `below`, the `field`th of operation `index`.
  [[nodiscard]] std::uint64_t draw(std::int64_t index, std::uint64_t field, std::uint64_t below) const;
  [[nodiscard]] bool is_exchange(std::int64_t index) const;
  [[nodiscard]] Collective collective_at(std::int64_t index) const;
  /// Of a v form, of at most `most` elements. In place, what a rank sends to each other is as long as what it gets.
  [[nodiscard]] std::shared_ptr<const CellBlocks> blocks_at(std::int64_t index, const SoakOperation& one,
                                                            Count most) const;

  std::uint64_t seed_;
  int ranks_;
  std::int64_t operations_;
};

/// Elements that rank `from` sends to rank `to` in an exchange: one count for each pair, some of them 0.
[[nodiscard]] Count exchanged(const SoakOperation& operation, int from, int to);

}  // namespace tutti::harness::soak
