// SPDX-License-Identifier: Apache-2.0
// The course of a gate: blocks of launches, more of them while cells are open, and the confirmation of what is slower.
// How a launch comes about is the caller's; tests give it rows of their own.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "harness/gate/judge.h"
#include "harness/gate/pairs.h"
#include "harness/gate/plan.h"
#include "impl/types/status.h"

namespace tutti::harness::gate {

/// What a launch gave: the rows of the side that was asked for, or of both where they ran in one launch.
struct Launched {
  std::vector<Row> mine;
  std::vector<Row> other;
  std::string failure;  ///< how it ended, where not well
};
/// Starts the ranks once for the cases of a group. An error ends the contest.
using Launch = std::function<Result<Launched>(GateSide side, const CellGroup& group, std::uint64_t seed)>;

struct ContestOptions {
  int least_blocks = 8;
  int most_blocks = 32;            ///< while cells are undecided
  bool is_abba = true;             ///< false: a block is one launch, which gives both sides
  bool confirms = true;            ///< what is slower is measured again
  bool is_against_record = false;  ///< whose machines need not be those of this side
  std::uint64_t seed = 1;
  SideNames names;
};

class Contest {
 public:
  /// `begun`: evidence as far as it is known, one for each case; what is decided by it is not measured.
  Contest(std::vector<Case> cases, std::vector<Evidence> begun, ContestOptions options);

  struct Progress {
    bool confirms = false;
    int block = 0;  ///< from 1
    int most = 0;
    std::size_t cells = 0;             ///< that are measured in it
    int look = 0;                      ///< the block after which cells may be decided
    std::span<const Case> cases = {};  ///< those cells'
  };
  /// Errors: those of `launch`; what was measured until then stands.
  Status run(const Launch& launch, const std::function<void(const Progress&)>& on_block);

  [[nodiscard]] const std::vector<Evidence>& evidence() const { return evidence_; }
  [[nodiscard]] const std::vector<Case>& cases() const { return cases_; }

 private:
  using Wanted = std::function<bool(const Evidence&)>;
  [[nodiscard]] bool is_look(int blocks) const;
  [[nodiscard]] Progress progress_at(int block, bool confirms, std::span<const Case> cases) const;
  /// Runs what is slower again.
  Status confirm(const Launch& launch, const std::function<void(const Progress&)>& on_block);
  [[nodiscard]] std::vector<Case> cases_that(const Wanted& wanted) const;
  Status run_block(std::span<const Case> cases, int block, bool confirms, const Launch& launch);
  Status run_group(const CellGroup& group, int block, bool confirms, const Launch& launch);
  Evidence& evidence_of(const Case& one);

  std::vector<Case> cases_;
  std::vector<Evidence> evidence_;  // by case
  ContestOptions options_;
  std::mt19937_64 random_;
};

/// Evidence of a case before anything is known of it.
[[nodiscard]] Evidence evidence_for(const Case& one);

}  // namespace tutti::harness::gate
