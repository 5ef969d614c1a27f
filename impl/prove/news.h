// SPDX-License-Identifier: Apache-2.0
// The visitor that knows which ranks' starts each rank has heard of, directly or not. Free slots are not counted as
// news of the receiver, so that what it finds holds for any number of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

class News {
 public:
  using Words = std::vector<std::uint64_t>;
  using Slice = Words;

  explicit News(std::size_t ranks) : known_(ranks, Words((ranks + 63) / 64)) {
    for (std::size_t rank = 0; rank < known_.size(); ++rank) known_[rank][rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(known_.size()); }
  [[nodiscard]] bool has_heard(int rank, int other) const {
    return (of(rank)[static_cast<std::size_t>(other) / 64] >> (static_cast<unsigned>(other) % 64) & 1U) != 0;
  }

  void signal(int rank, std::uint32_t /*op*/, std::size_t id) {
    if (sent_.size() <= id) sent_.resize(id + 1);
    sent_[id] = of(rank);
  }
  void heard(int rank, int /*peer*/, std::uint32_t /*op*/, std::size_t id) { learn(rank, sent_[id]); }
  void move(int rank, std::uint32_t /*op*/, std::span<Slice* const> full, std::span<Slice* const> empty) {
    for (const Slice* const slice : full) learn(rank, *slice);
    for (Slice* const slice : empty) *slice = of(rank);
  }

 private:
  [[nodiscard]] const Words& of(int rank) const { return known_[static_cast<std::size_t>(rank)]; }
  void learn(int rank, const Words& news) {
    Words& known = known_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < news.size(); ++i) known[i] |= news[i];
  }

  std::vector<Words> known_;
  std::vector<Words> sent_;  ///< with each SIGNAL
};

}  // namespace tutti
