// SPDX-License-Identifier: Apache-2.0
// What a rank is to the operating system: the value of --ranks-as, and the part "P4.processes" of a case id.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::harness {

enum class RanksAs : std::uint8_t {
  processes,  ///< one process per rank
  threads,    ///< one process, one thread per rank
  tasks,      ///< one process, one thread that progresses all ranks
};

inline constexpr std::array<std::string_view, 3> kRanksAsNames = {"processes", "threads", "tasks"};

[[nodiscard]] constexpr std::string_view to_string(RanksAs ranks_as) {
  return kRanksAsNames[static_cast<std::size_t>(ranks_as)];
}

/// Nothing if `name` is none of kRanksAsNames.
[[nodiscard]] constexpr std::optional<RanksAs> parse_ranks_as(std::string_view name) {
  for (std::size_t i = 0; i < kRanksAsNames.size(); ++i) {
    if (kRanksAsNames[i] == name) return static_cast<RanksAs>(i);
  }
  return std::nullopt;
}

}  // namespace tutti::harness
