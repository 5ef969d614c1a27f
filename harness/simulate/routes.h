// SPDX-License-Identifier: Apache-2.0
// Which shared links a message crosses, and how slow each part is.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/floors.h"
#include "harness/simulate/model.h"

namespace tutti::harness::simulate {

/// Of one machine and one number of ranks.
class Routes {
 public:
  /// `period`: as of WalkOptions; a link stands for those that lie the same way from whole periods further on.
  Routes(const Machine& machine, int ranks, int period);

  /// Fills `links` with the shared links from one node to another, in their order; returns the hops that take `hop`.
  int find(int from_rank, int to_rank, std::vector<int>& links) const;
  [[nodiscard]] int links() const { return static_cast<int>(shares_.size()); }
  /// By how many times a link is faster than an interface, as its inverse: how long it is busy with what keeps an
  /// interface busy for 1.
  [[nodiscard]] double share(int link) const { return shares_[static_cast<std::size_t>(link)]; }
  [[nodiscard]] std::string name(int link) const;

  /// Which interface of all that are walked.
  [[nodiscard]] int interface_of(int rank) const;
  [[nodiscard]] int interfaces() const { return interfaces_; }
  [[nodiscard]] std::string interface_name(int interface) const;
  /// By how many times a part takes longer than without faults.
  [[nodiscard]] double processor_factor(int rank) const { return factor(processors_, node_at(rank)); }
  [[nodiscard]] double out_factor(int rank) const;
  [[nodiscard]] double in_factor(int rank) const;
  [[nodiscard]] double pair_factor(int from, int to) const;
  [[nodiscard]] bool has_faults() const { return has_faults_; }
  /// The machine's node on which a rank lies.
  [[nodiscard]] int node_at(int rank) const {
    const auto own = static_cast<std::size_t>(machine_.node_of(rank));
    return placed_.empty() ? static_cast<int>(own) : placed_[own];
  }

 private:
  [[nodiscard]] static double factor(const std::vector<double>& factors, int index) {
    return factors.empty() ? 1 : factors[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int rail_of(int rank) const { return rank % machine_.ranks_per_node % rails_; }
  void place(int used);
  void make_links();
  void add_faults();
  int find_in_torus(int from, int to, std::vector<int>& links) const;

  const Machine& machine_;
  const Network& network_;
  int rails_;
  int nodes_;       ///< of the machine
  int leaves_ = 0;  ///< or groups
  int walked_leaves_ = 0;
  int interfaces_;
  bool has_faults_ = false;
  std::vector<int> placed_;  ///< by the ranks' node; empty: the same
  std::vector<double> shares_;
  std::vector<double> processors_, out_, in_, rail_factors_;
  std::map<std::pair<int, int>, double> pairs_;
};

}  // namespace tutti::harness::simulate
