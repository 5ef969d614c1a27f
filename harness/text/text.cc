// SPDX-License-Identifier: Apache-2.0
#include "harness/text/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::harness::text {

std::string joined(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  const std::string last = words.back();
  if (words.size() == 1) return last;
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), last);
}

std::string letters(const std::vector<int>& units) {
  const auto follows = [](int a, int b) { return b != a + 1; };
  const bool is_run = std::ranges::adjacent_find(units, follows) == units.end();
  if (is_run && units.size() > 2) return letter(units.front()) + " to " + letter(units.back());
  std::vector<std::string> names;
  for (const int unit : units) names.push_back(letter(unit));
  return joined(names);
}

std::string in_order(const std::vector<std::string>& clauses) {
  const auto has_and = [](const std::string& clause) { return clause.find(" and ") != std::string::npos; };
  if (clauses.size() < 2 || std::ranges::none_of(clauses, has_and)) return joined(clauses);
  return fmt::format("{}, and {}", fmt::join(clauses.begin(), clauses.end() - 1, ", "), clauses.back());
}

std::string letter(int unit) {
  constexpr int kLetters = 26;
  if (unit < kLetters) return std::string(1, static_cast<char>('a' + unit));
  if (unit < 2 * kLetters) return std::string(1, static_cast<char>('A' + unit - kLetters));
  return fmt::format("u{}", unit);
}

std::string rank_list(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  constexpr std::size_t kWrittenOut = 3;
  if (ranks.size() > kWrittenOut && ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size())) {
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  }
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + joined(names);
}

std::string number_text(double number) { return fmt::format("{:.10g}", number); }

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines;
  while (text.size() > width) {
    std::size_t cut = text.rfind(' ', width);
    if (cut == std::string_view::npos || cut == 0) cut = text.find(' ');
    if (cut == std::string_view::npos) break;
    lines += fmt::format("{}\n{:{}}", text.substr(0, cut), "", indent);
    text.remove_prefix(cut + 1);
  }
  return lines + std::string(text) + "\n";
}

}  // namespace tutti::harness::text
