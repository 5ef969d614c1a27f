// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/leaves.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Takes the first word off `rest`; empty: there is none.
std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

}  // namespace

std::vector<int> leaves_of_size(int nodes, int size) {
  TUTTI_ASSERT(size >= 1, "leaves of {}", size);
  std::vector<int> leaves;
  for (int node = 0; node < nodes; ++node) leaves.push_back(node / size);
  return leaves;
}

std::string leaf_from_slurm(std::string_view address, std::string_view pattern) {
  // A node's name may have dots, a switch's has none.
  const auto switches = std::ranges::count(pattern, '.');
  const std::string_view last = pattern.substr(pattern.rfind('.') + 1);
  if (switches == 0 || last != "node") return {};
  const std::string_view before_last = pattern.substr(0, pattern.rfind('.'));
  const std::string_view kind = before_last.substr(before_last.rfind('.') + 1);
  if (kind != "switch" && kind != "block") return {};
  std::size_t end = 0;
  for (std::ptrdiff_t level = 0; level < switches; ++level) {
    end = address.find('.', level == 0 ? 0 : end + 1);
    if (end == address.npos) return {};
  }
  const bool has_node = end + 1 < address.size();
  return has_node && address.front() != '.' ? std::string(address.substr(0, end)) : std::string();
}

std::vector<int> leaves_from_paths(std::span<const std::string> paths) {
  std::map<std::string_view, int> numbers;
  std::vector<int> leaves;
  for (const std::string& path : paths) {
    if (path.empty()) return {};
    leaves.push_back(numbers.try_emplace(path, static_cast<int>(numbers.size())).first->second);
  }
  return leaves;
}

Result<std::vector<int>> leaves_from_file(std::string_view text, std::span<const std::string> names) {
  constexpr int kNone = -1;
  std::vector<int> leaves(names.size(), kNone);
  std::map<std::string_view, int> numbers;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    rest = rest.substr(0, rest.find('#'));
    const std::string_view node = take_word(rest);
    if (node.empty()) continue;
    const std::string_view leaf = take_word(rest);
    if (leaf.empty() || !take_word(rest).empty()) {
      return error(Code::invalid_argument, "line {}: '{}': a line is `NODE LEAF`", line, shown(node));
    }
    const auto name = std::ranges::find(names, node);
    if (name == names.end()) continue;  // of a larger cluster
    const int number = numbers.try_emplace(leaf, static_cast<int>(numbers.size())).first->second;
    int& mine = leaves[static_cast<std::size_t>(name - names.begin())];
    if (mine != kNone && mine != number) {
      return error(Code::invalid_argument, "line {}: '{}' has two leaves", line, shown(node));
    }
    mine = number;
  }
  const auto without = std::ranges::find(leaves, kNone);
  if (without == leaves.end()) return leaves;
  return error(Code::invalid_argument, "it has no leaf for '{}'",
               shown(names[static_cast<std::size_t>(without - leaves.begin())]));
}

}  // namespace tutti::harness::accept
