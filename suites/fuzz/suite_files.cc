// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/cases/suite.h"
#include "harness/cases/sweep.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {

void suite_files(std::string_view input) {
  static const std::vector<std::string> keys{"collectives", "sizes", "ranks", "roots", "cadence"};
  const auto suite = harness::suite_from_toml(input, keys);
  if (!suite.is_ok()) return check_message(suite.status());
  TUTTI_ASSERT(!suite.value().sweeps.empty() || !suite.value().cells.empty(), "a suite of nothing");
  for (const harness::Suite::Sweep& sweep : suite.value().sweeps) {
    for (const auto& [key, text] : sweep.texts) {
      TUTTI_ASSERT(std::ranges::find(keys, key) != keys.end(), "key '{}'", key);
      if (key != "sizes") continue;
      if (const auto sizes = harness::parse_sizes(text); !sizes.is_ok()) check_message(sizes.status());
    }
  }
  for (const harness::Case& one : suite.value().cells) {
    const auto again = harness::case_of_cell_id(cell_id(one));
    TUTTI_ASSERT(again.is_ok() && again.value() == one, "cell '{}'", cell_id(one));
  }
}

}  // namespace tutti::fuzz
