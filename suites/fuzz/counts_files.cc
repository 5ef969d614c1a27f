// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "harness/cases/case.h"
#include "harness/cases/counts.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {

void counts_files(std::string_view input) {
  std::istringstream file{std::string(input)};
  const auto counts = harness::read_counts(file);
  if (!counts.is_ok()) return check_message(counts.status());
  const auto by_name = harness::counts_of_name(counts.value().name);
  TUTTI_ASSERT(by_name.is_ok() && by_name.value().pattern == harness::Pattern::file, "'{}'", counts.value().name);
  for (const Collective collective : {Collective::all_gather_v, Collective::all_to_all_v}) {
    harness::Cell cell{.collective = collective, .counts = counts.value()};
    const auto numbers = static_cast<int>(counts.value().numbers.size());
    for (cell.ranks = 1; cell.ranks <= numbers; ++cell.ranks) {
      if (!fits(cell.counts, cell.problem())) continue;
      set_bytes(cell, 0);
      TUTTI_ASSERT(cell.bytes >= 0 && cell.count >= 0 && cell.count * 4 <= cell.bytes * cell.ranks,
                   "{} bytes, {} elements", cell.bytes, cell.count);
    }
  }
}

}  // namespace tutti::fuzz
