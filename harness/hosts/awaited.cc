// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/awaited.h"

#include <algorithm>

#include "impl/types/names.h"
#include "impl/types/number.h"

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
    const std::size_t space = std::min(line.find(' '), line.size());
    const auto rank = parse_number(line.substr(0, space), "a rank", 0, ranks - 1);
    const auto peer = parse_number(line.substr(std::min(space + 1, line.size())), "a rank", 0, ranks - 1);
    if (!rank.is_ok() || !peer.is_ok()) {
      return error(Code::invalid_argument, "'{}' is not a rank and the rank that it awaits, each from 0 to {}",
                   shown(line), ranks - 1);
    }
    awaited[rank.value()] = peer.value();
  }
  return awaited;
}

}  // namespace tutti::harness::hosts
