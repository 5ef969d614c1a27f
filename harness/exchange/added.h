// SPDX-License-Identifier: Apache-2.0
// Files of schedules as algorithms of this process. The text goes to the ranks, which add it by the same name.
#pragma once

#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::exchange {

inline constexpr std::size_t kMostInAdded = std::size_t{256} << 10;  ///< bytes: they travel to every rank

/// Adds the schedule in the file and returns its name: `dir/ring.xml` is `ring_xml`. Errors: as import_file.
[[nodiscard]] Result<std::string> add_file(const std::string& path);
/// Adds a schedule by this name; the same one again changes nothing. Errors: as import_msccl, and invalid_argument for
/// a name of an algorithm or one that has other letters than names have.
[[nodiscard]] Status add_text(const std::string& name, const std::string& text);
/// The text that was added by this name; null if there is none.
[[nodiscard]] const std::string* added_text(const std::string& name);

}  // namespace tutti::harness::exchange
