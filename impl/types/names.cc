// SPDX-License-Identifier: Apache-2.0
#include "impl/types/names.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/ranges.h>

namespace tutti {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kMostShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t') {
      result += c == '\n' ? "\\n" : "\\t";
    } else if (byte < ' ' || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return text.size() > kMostShown ? result + "..." : result;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  name = name.substr(0, kMostShown);
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    if (const std::size_t distance = edit_distance(name, candidate); distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

Status unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> candidates) {
  return error(Code::invalid_argument, "unknown {} '{}': did you mean '{}'? (one of: {})", kind, shown(name),
               nearest_name(name, candidates), fmt::join(candidates, " "));
}

}  // namespace tutti
