// SPDX-License-Identifier: Apache-2.0
// A row as a JSON object: every column is a key, and what was not measured is null. Numbers are the same text as in the
// CSV. Ranks tell their rows to the launcher in this form, one per line.
#pragma once

#include <string>
#include <string_view>

#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

/// One object on one line, keys in the order of the columns. Text that is not UTF-8 gets replacement characters.
[[nodiscard]] std::string row_to_json(const Row& row);
/// The row that `row_to_json` wrote. Keys that are no columns are ignored: a newer writer may have appended some.
/// Columns that were appended later may be missing: an older one did not have them.
/// Errors: invalid_argument naming the column that is missing or of another type.
[[nodiscard]] Result<Row> row_from_json(std::string_view text);

}  // namespace tutti::harness::record
