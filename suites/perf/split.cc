// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/split.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "impl/types/names.h"

namespace tutti::perf {
namespace {

constexpr const char* kSplit = "NCCL_TESTS_SPLIT";
constexpr const char* kSplitMask = "NCCL_TESTS_SPLIT_MASK";

struct Arithmetic {
  std::string_view name;
  char sign;
  int least;  ///< number that it takes
  int (*group)(int process, int number);
};
constexpr std::array kArithmetics{
    Arithmetic{"AND", '&', 0, [](int process, int number) { return process & number; }},
    Arithmetic{"OR", '|', 0, [](int process, int number) { return process | number; }},
    Arithmetic{"MOD", '%', 1, [](int process, int number) { return process % number; }},
    Arithmetic{"DIV", '/', 1, [](int process, int number) { return process / number; }},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

/// Takes `word` off the beginning, whatever its case.
bool take(std::string_view& text, std::string_view word) {
  const auto is_same = [](char one, char other) { return std::toupper(static_cast<unsigned char>(one)) == other; };
  if (!std::ranges::equal(text.substr(0, word.size()), word, is_same)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// All of the text, in `base`, which a prefix may change: 0x is hexadecimal, 0b binary. Another leading zero is octal
/// to some readers and not to others, and no number here.
std::optional<int> number_of(std::string_view text, int base) {
  if (take(text, "0X")) {
    base = 16;
  } else if (base == 10 && take(text, "0B")) {
    base = 2;
  } else if (base == 10 && text.size() > 1 && text.front() == '0') {
    return {};
  }
  int value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc() || stop != text.data() + text.size() || value < 0) return {};
  return value;
}

/// Of a variable that is set to something.
std::optional<std::string_view> value_of(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  return text;
}

Result<std::vector<int>> groups_by_mask(std::string_view text, int processes) {
  const std::optional<int> mask = number_of(trimmed(text), 16);
  if (!mask) {
    return error(Code::invalid_argument, "{} is '{}': it must be hexadecimal, from 0x0 to 0x{:x}, such as 0x1",
                 kSplitMask, shown(text), std::numeric_limits<int>::max());
  }
  std::vector<int> groups;
  for (int process = 0; process < processes; ++process) groups.push_back(process & *mask);
  return groups;
}

Result<std::vector<int>> groups_by_arithmetic(std::string_view text, int processes) {
  std::string_view rest = trimmed(text);
  const auto* const found = std::ranges::find_if(kArithmetics, [&](const Arithmetic& one) {
    return take(rest, one.name) || take(rest, std::string_view(&one.sign, 1));
  });
  if (found == kArithmetics.end()) {
    return error(Code::invalid_argument,
                 "{} is '{}': it must begin with AND, OR, MOD or DIV (& | % /): did you mean 'MOD 2'?", kSplit,
                 shown(text));
  }
  const std::optional<int> number = number_of(trimmed(rest), 10);
  if (!number || *number < found->least) {
    return error(Code::invalid_argument,
                 "{} is '{}': after {} must stand a number from {} to {}, decimal, 0x or 0b: did you mean '{} 2'?",
                 kSplit, shown(text), found->name, found->least, std::numeric_limits<int>::max(), found->name);
  }
  std::vector<int> groups;
  for (int process = 0; process < processes; ++process) groups.push_back(found->group(process, *number));
  return groups;
}

}  // namespace

Result<Split> Split::from_environment(int processes, int ranks_of_each) {
  if (const auto mask = value_of(kSplitMask)) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<int> groups, groups_by_mask(*mask, processes));
    return Split(fmt::format("{}={}", kSplitMask, *mask), std::move(groups), ranks_of_each);
  }
  if (const auto text = value_of(kSplit)) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<int> groups, groups_by_arithmetic(*text, processes));
    return Split(fmt::format("{}={}", kSplit, *text), std::move(groups), ranks_of_each);
  }
  return Split("", std::vector<int>(static_cast<std::size_t>(processes), 0), ranks_of_each);
}

Split::Split(std::string setting, std::vector<int> groups, int ranks_of_each)
    : setting_(std::move(setting)), groups_(std::move(groups)), ranks_of_each_(ranks_of_each) {
  std::map<int, int> sizes;
  for (const int group : groups_) sizes[group] += ranks_of_each_;
  for (const auto& [group, ranks] : sizes) sizes_.push_back(ranks);
  std::ranges::sort(sizes_);
}

Share Split::of(int process) const {
  const int group = groups_[static_cast<std::size_t>(process)];
  const auto before = std::count(groups_.begin(), groups_.begin() + process, group);
  const auto members = std::ranges::count(groups_, group);
  return {.group = group,
          .ranks = static_cast<int>(members) * ranks_of_each_,
          .first_rank = static_cast<int>(before) * ranks_of_each_};
}

std::string Split::note(bool has_roots) const {
  if (!has_groups()) {
    return fmt::format("{}: 1 group: processes are split, not their threads, and {}", shown(setting_),
                       groups_.size() == 1 ? "there is 1" : fmt::format("these {} are in one", groups_.size()));
  }
  const bool is_even = sizes_.front() == sizes_.back();
  std::string text = fmt::format("{}: {} groups of ", shown(setting_), sizes_.size());
  text += is_even ? fmt::format("{}", sizes_.front()) : fmt::format("{} to {}", sizes_.front(), sizes_.back());
  text += fmt::format(" {}; rows are those of group {}, with times over all groups",
                      sizes_.back() == 1 ? "rank" : "ranks", groups_.front());
  // The groups take the same steps.
  if (has_roots && !is_even) text += fmt::format(", and roots below {}", sizes_.front());
  return text;
}

}  // namespace tutti::perf
