// SPDX-License-Identifier: Apache-2.0
// Rows from a CSV that `run --csv` wrote, this version's or another's. Columns are found by name. A column that is not
// there leaves its field as it is, and one that is not known is passed over. A text is taken apart as RFC 4180 has it;
// blanks belong to a field, carriage returns around it do not. Empty lines after the last one are passed over if
// there are several columns, and no other line is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

/// Errors: invalid_argument naming the line, the column and what is wrong about it; or that there is no column `case`.
/// A last line that is not complete is one of them. resource: no memory for a field.
[[nodiscard]] Result<std::vector<Row>> rows_from_csv(std::string_view text);

/// What its first line names. Errors: invalid_argument, that the line is not complete.
[[nodiscard]] Result<std::vector<std::string>> column_names_of_csv(std::string_view text);

/// The fields of each line, the first of which names the columns. Errors: invalid_argument naming the line, where a line
/// has another number of fields, too; resource.
[[nodiscard]] Result<std::vector<std::vector<std::string>>> fields_of_csv(std::string_view text);

/// Errors: invalid_argument naming the path and the reason, or what rows_from_csv says.
[[nodiscard]] Result<std::vector<Row>> read_csv(const std::string& path);

}  // namespace tutti::harness::record
