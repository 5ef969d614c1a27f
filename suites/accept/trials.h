// SPDX-License-Identifier: Apache-2.0
// Pretended clusters by the hundred: how often an acceptance names the part that is faulty, and how often one that is
// not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/findings.h"
#include "harness/accept/pretend.h"

namespace tutti::suites {

/// What is put into each cluster of a cell.
struct TrialCell {
  /// A class's name; "none": healthy; "mixed": `faults` of any kinds; "older-25": 25 % of the nodes are older ones.
  std::string_view kind = "none";
  int nodes = 16;
  int leaf_size = 4;
  double share = 0.1;  ///< of the speed that a fault, or an older node, loses
  harness::accept::Noise noise = {};
  bool are_multiples_drawn = false;  ///< each node's noise is 1 to 3 times that of `noise`
  int faults = 1;
  bool is_full = false;
};

/// Of all clusters of a cell.
struct TrialCounts {
  int clusters = 0;
  int put_in = 0;   ///< faults
  int named = 0;    ///< of these
  int classed = 0;  ///< named, and with the right class
  int false_parts = 0;
  int alarms = 0;    ///< clusters with a FAIL that is none
  int suspects = 0;  ///< findings that are not decided
  int splits = 0;
  long long tests = 0, rounds = 0;
  int within_forecast = 0;   ///< clusters with no more rounds than pairs_forecast told
  double analysis_s = 0;     ///< all of it, in processor time
  double worst_s = 0;        ///< of one cluster
  std::string example = {};  ///< a cluster that went wrong

  [[nodiscard]] double f1() const;
  [[nodiscard]] double class_share() const;
};

/// The share of older nodes, 0 to 1, that a kind names; 0 if it names none.
[[nodiscard]] double older_share(std::string_view kind);
/// Kinds of single faults.
[[nodiscard]] const std::vector<std::string_view>& trial_kinds();
/// `clusters` clusters, from `seed` on.
[[nodiscard]] TrialCounts try_clusters(const TrialCell& cell, int clusters, std::uint64_t seed);
/// A line of a table.
[[nodiscard]] std::string line_of(const TrialCell& cell, const TrialCounts& counts);

}  // namespace tutti::suites
