// SPDX-License-Identifier: Apache-2.0
#include "impl/types/names.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/ranges.h>

#include "impl/types/printable.h"

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

/// What makes a name this one: small letters, no '_' and no '-', no prefix of a library.
std::string essence(std::string_view name) {
  constexpr std::string_view kNccl = "nccl";
  const auto as_letter = [](char c) { return static_cast<unsigned char>(c); };
  if (name.starts_with("MPI_") || name.starts_with("mpi_")) name.remove_prefix(4);
  const bool is_of_nccl = name.starts_with(kNccl) && name.size() > kNccl.size();
  if (is_of_nccl && std::isupper(as_letter(name[kNccl.size()])) != 0) name.remove_prefix(kNccl.size());
  std::string text;
  for (const char c : name) {
    if (c != '_' && c != '-') text += static_cast<char>(std::tolower(as_letter(c)));
  }
  return text;
}

}  // namespace

std::string shown(std::string_view text) {
  const std::string_view beginning = beginning_of(text, kMostShown);
  return printable_line(beginning) + (beginning.size() < text.size() ? "..." : "");
}

bool is_same_name(std::string_view one, std::string_view other) { return essence(one) == essence(other); }

bool is_alias(std::string_view name, std::string_view aliases) {
  while (!aliases.empty()) {
    const std::size_t end = std::min(aliases.find(' '), aliases.size());
    if (is_same_name(name, aliases.substr(0, end))) return true;
    aliases.remove_prefix(std::min(end + 1, aliases.size()));
  }
  return false;
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string wrong = essence(name.substr(0, kMostShown));
  std::string nearest;
  std::size_t least = 0;
  for (const std::string& candidate : candidates) {
    const std::string right = essence(candidate);
    const std::size_t longer = std::max(wrong.size(), right.size());
    const std::size_t most = std::max<std::size_t>(1, longer / 3);
    const std::size_t distance = edit_distance(wrong, right);
    // Of a name of one letter nothing would be left.
    if (distance > most || distance >= longer || (!nearest.empty() && distance >= least)) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? std::string() : fmt::format(": did you mean '{}'?", nearest);
}

Status unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> candidates) {
  return error(Code::invalid_argument, "unknown {} '{}'{} (one of: {})", kind, shown(name),
               suggestion(name, candidates), fmt::join(candidates, " "));
}

}  // namespace tutti
