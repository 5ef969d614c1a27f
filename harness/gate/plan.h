// SPDX-License-Identifier: Apache-2.0
// From cells to the command lines of `tutti run` that measure them: what every build of tutti understands, so that one
// build can run another.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/cases/case.h"

namespace tutti::harness::gate {

inline constexpr std::size_t kMostGateCells = 40;

/// Cases of one `tutti run`, which is one start of the ranks: they differ in their bytes only.
struct CellGroup {
  std::vector<Case> cases;  ///< at least one
};
/// In the order of the first case of each.
[[nodiscard]] std::vector<CellGroup> groups_of(std::span<const Case> cases);

/// `run all_reduce --sizes 8,65536 --dtypes float ...`, without backends.
[[nodiscard]] std::vector<std::string> run_arguments(const CellGroup& group);

/// Whether a row is of this case: of its cell where its algorithm is `auto`, or the row another backend's.
[[nodiscard]] bool is_of_case(const Case& one, std::string_view case_id_of_row);

}  // namespace tutti::harness::gate
