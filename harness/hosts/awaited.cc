// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/awaited.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "impl/types/names.h"

namespace tutti::harness::hosts {

std::string awaited_lines(const std::map<int, int>& awaited) {
  std::string lines;
  for (const auto& [rank, peer] : awaited) lines += fmt::format("{} {}\n", rank, peer);
  return lines;
}

Result<std::map<int, int>> awaited_from_lines(std::string_view lines, int ranks) {
  std::map<int, int> awaited;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const char* const end = line.data() + line.size();
    int rank = -1;
    int peer = -1;
    const auto [space, failure] = std::from_chars(line.data(), end, rank);
    const bool has_peer = failure == std::errc() && space != end && *space == ' ';
    const bool are_two = has_peer && std::from_chars(space + 1, end, peer).ptr == end;
    if (!are_two || rank < 0 || rank >= ranks || peer < 0 || peer >= ranks) {
      return error(Code::invalid_argument, "'{}' is not a rank and the rank that it awaits, each from 0 to {}",
                   shown(line), ranks - 1);
    }
    awaited[rank] = peer;
  }
  return awaited;
}

}  // namespace tutti::harness::hosts
