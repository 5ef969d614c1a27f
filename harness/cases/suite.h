// SPDX-License-Identifier: Apache-2.0
// A suite: cells by name, in a TOML file that is kept with the code that it watches.
//
//   [[sweep]]                                 # as many as there are
//   collectives = ["all_reduce", "barrier"]   # keys and values are those of the sweep options
//   sizes = "8,64K,1M"
//   ranks = [2, 4]
//
//   cells = ["all_reduce/shm/float/sum/P2.processes/none/4096B/out/private/isolated"]   # above the first sweep
//
// A cell is named by its id, without backend and algorithm; a case of the own backend may stand there too.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

struct Suite {
  struct Sweep {
    int line = 0;                              ///< where it begins, for messages
    std::map<std::string, std::string> texts;  ///< by key; the items of a list with commas between them
  };
  std::vector<Sweep> sweeps;
  std::vector<Case> cells;  ///< backend tutti, algorithm `auto` where the suite names no other
};

/// `keys`: what a sweep may have. Errors: invalid_argument naming the line, what is wrong there and the nearest right.
[[nodiscard]] Result<Suite> suite_from_toml(std::string_view text, std::span<const std::string> keys);

/// The case of a cell's id, `auto` for its algorithm; or of a case's. Errors: as parse_case_id.
[[nodiscard]] Result<Case> case_of_cell_id(std::string_view id);
/// The id without backend and algorithm where that is `auto`, else the case's.
[[nodiscard]] std::string cell_id(const Case& one);

}  // namespace tutti::harness::cases
