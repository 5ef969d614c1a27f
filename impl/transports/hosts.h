// SPDX-License-Identifier: Apache-2.0
// The hosts of a world, and which ranks are on which. Ranks of one host share memory; ranks of two hosts have links
// (link.h).
#pragma once

#include <vector>

namespace tutti {

class Hosts {
 public:
  /// `host_of[rank]`: numbers from 0 without a gap.
  explicit Hosts(std::vector<int> host_of);
  /// Ranks in their order, as many to each host as to the next; the first hosts have one more where it does not come
  /// out even. Requires: 1 <= hosts <= ranks.
  [[nodiscard]] static Hosts in_blocks(int ranks, int hosts);

  [[nodiscard]] int count() const { return static_cast<int>(ranks_on_.size()); }
  [[nodiscard]] int ranks() const { return static_cast<int>(host_of_.size()); }
  [[nodiscard]] int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  /// Of a rank among those of its host.
  [[nodiscard]] int place_of(int rank) const { return place_of_[static_cast<std::size_t>(rank)]; }
  /// In their order.
  [[nodiscard]] const std::vector<int>& ranks_on(int host) const { return ranks_on_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] bool share_memory(int one, int other) const { return host_of(one) == host_of(other); }
  /// As a problem has it (collective.h): ranks of each host, where all have equally many, in blocks. Else 1: each rank
  /// may stand for a host of its own. 0 on one host.
  [[nodiscard]] int ranks_per_host() const;
  /// Ranks of the host that has the most.
  [[nodiscard]] int most_ranks() const;

 private:
  std::vector<int> host_of_, place_of_;
  std::vector<std::vector<int>> ranks_on_;
};

}  // namespace tutti
