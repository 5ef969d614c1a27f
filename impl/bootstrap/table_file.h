// SPDX-License-Identifier: Apache-2.0
// TUTTI_TABLE, for libraries in programs of others: the file of a selection table. The program `tutti` has --table, and
// reads the variable itself. Nothing else of this folder is needed for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "impl/types/status.h"

namespace tutti {

struct TableFile {
  std::string name;  ///< without its folder
  std::string text;
};

/// Nothing if the variable is not set, or empty. Errors: invalid_argument naming the path and the reason: it cannot be
/// read, is no regular file, or has more than `most` bytes.
[[nodiscard]] Result<std::optional<TableFile>> table_file_here(std::size_t most);

}  // namespace tutti
