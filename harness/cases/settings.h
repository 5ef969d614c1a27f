// SPDX-License-Identifier: Apache-2.0
// Settings as systems: `openmpi{coll=^han}` is a backend whose library is started with that setting. It is a system of
// its own, beside the backend without it. The text is part of its name in ids, rows and files. So it has no character
// that separates something there: no '/', no '.', no quote and no space.
//
//   openmpi{btl=self,vader;coll=^han}     names in alphabetical order, as they stand in ids
//
// What a setting is to the library is the backend's to say (probe.h of the program): a variable of the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

struct Setting {
  std::string name;
  std::string value;

  bool operator==(const Setting&) const = default;
};

inline constexpr std::size_t kMostInSettings = 200;  ///< characters between the braces

/// The text between braces, as ids have it: settings by name, none twice. Errors: invalid_argument naming the setting
/// and what is allowed.
[[nodiscard]] Result<std::vector<Setting>> parse_settings(std::string_view text);
/// "{coll=^han}"; empty of none.
[[nodiscard]] std::string settings_text(std::vector<Setting> settings);
/// Those of a system; none where it has none.
[[nodiscard]] std::vector<Setting> settings_of(std::string_view system);
/// Whether `text` is "" or what settings_text writes.
[[nodiscard]] bool are_settings(std::string_view text);

/// The items of a list of systems: commas within braces are part of an item. Errors: invalid_argument for an empty
/// item, and for braces that do not match.
[[nodiscard]] Result<std::vector<std::string>> split_systems(std::string_view text);

}  // namespace tutti::harness::cases
