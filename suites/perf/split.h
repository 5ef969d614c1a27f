// SPDX-License-Identifier: Apache-2.0
// NCCL_TESTS_SPLIT and NCCL_TESTS_SPLIT_MASK share the processes out into groups, by arithmetic on their numbers. The
// groups run the same operations at the same time, each among its own ranks.
#pragma once

#include <string>
#include <vector>

#include "impl/types/status.h"

namespace tutti::perf {

/// What one process is in its group.
struct Share {
  int group = 0;       ///< the number that the arithmetic yields
  int ranks = 1;       ///< of the group
  int first_rank = 0;  ///< of the process, in the group
};

class Split {
 public:
  /// The split of `processes` processes, as the environment has it. SPLIT_MASK goes before SPLIT, and an empty one does
  /// not count. Without them all processes are one group. Errors: invalid_argument naming the variable, its value and
  /// what is right.
  [[nodiscard]] static Result<Split> from_environment(int processes, int ranks_of_each);

  /// "NCCL_TESTS_SPLIT=MOD 2"; empty where nothing was asked for.
  [[nodiscard]] const std::string& setting() const { return setting_; }
  [[nodiscard]] Share of(int process) const;
  /// Ranks of each group, rising.
  [[nodiscard]] const std::vector<int>& sizes() const { return sizes_; }
  [[nodiscard]] bool has_groups() const { return sizes_.size() > 1; }
  /// What a reader of the table has to know of a collective that has roots, or none. Requires: a setting.
  [[nodiscard]] std::string note(bool has_roots) const;

 private:
  Split(std::string setting, std::vector<int> groups, int ranks_of_each);

  std::string setting_;
  std::vector<int> groups_;  ///< by process
  std::vector<int> sizes_;
  int ranks_of_each_;
};

}  // namespace tutti::perf
