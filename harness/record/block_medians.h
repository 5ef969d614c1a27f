// SPDX-License-Identifier: Apache-2.0
// The medians of the blocks of a case, as runner 0 reports them. In each round of a cell every system has one block
// that counts, so blocks of one round lie next to each other in time, and their ratio is a pair.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

struct BlockMedian {
  int round = 0;
  double median_us = 0;  ///< above 0

  bool operator==(const BlockMedian&) const = default;
};

struct BlockMedians {
  std::string case_id;
  int operations = 1;                       ///< in a sample
  std::vector<BlockMedian> of_rounds = {};  ///< in their order; of a round without a valid sample there is none

  bool operator==(const BlockMedians&) const = default;
};

[[nodiscard]] std::string to_json(const BlockMedians& medians);
/// Errors: invalid_argument naming what is wrong in it.
[[nodiscard]] Result<BlockMedians> block_medians_from_json(std::string_view text);

}  // namespace tutti::harness::record
