// SPDX-License-Identifier: Apache-2.0
#include "impl/types/host_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "impl/types/host_name.h"
#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kSlots = "slots", kMaxSlots = "max_slots";

/// Takes what is before the next `separator` off `text`, and that. A separator within brackets is none.
std::string_view take_part(std::string_view& text, char separator) {
  bool is_within = false;
  std::size_t end = 0;
  for (; end < text.size() && (is_within || text[end] != separator); ++end) {
    if (text[end] == '[') is_within = true;
    if (text[end] == ']') is_within = false;
  }
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// The numbers of a range: as many as `count` from `first`, each at least `width` digits wide.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::size_t width = 0;
};
/// A text, or ranges one of whose numbers stands there.
struct Part {
  std::string_view text;
  std::vector<Range> ranges;
  std::uint64_t count = 1;  ///< of numbers in all ranges
};

std::optional<std::uint64_t> range_end(std::string_view digits) {
  constexpr std::size_t kMostDigits = 18;
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  const auto [stop, failure] = std::from_chars(digits.data(), end, value);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

Status too_many_hosts(std::string_view entry) {
  return error(Code::invalid_argument, "'{}' names too many hosts: a list has 1 to {}", shown(entry), kMostHosts);
}

Result<Range> range_of(std::string_view text, std::string_view entry) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto first = range_end(text.substr(0, dash));
  const auto last = dash == text.size() ? first : range_end(text.substr(dash + 1));
  if (!first || !last) {
    return error(Code::invalid_argument,
                 "'{}': '{}' is no range of numbers; brackets behind letters hold such ranges, as in node[01-64,70]",
                 shown(entry), shown(text));
  }
  if (*last < *first) {
    return error(Code::invalid_argument, "'{}': the range '{}' descends: did you mean '{}-{}'?", shown(entry), text,
                 text.substr(dash + 1), text.substr(0, dash));
  }
  return Range{.first = *first, .count = *last - *first + 1, .width = dash};
}

/// `entry` is all that messages name.
Result<std::vector<Part>> parts_of(std::string_view text, std::string_view entry) {
  std::vector<Part> parts;
  std::uint64_t hosts = 1;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('['), text.size());
    parts.push_back({.text = text.substr(0, open), .ranges = {}});
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return error(Code::invalid_argument, "'{}' has a '[' without a ']'", shown(entry));
    }
    Part part{.text = {}, .ranges = {}, .count = 0};
    std::string_view list = text.substr(1, close - 1);
    bool is_last = false;
    do {
      is_last = list.find(',') == std::string_view::npos;
      TUTTI_ASSIGN_OR_RETURN(const Range range, range_of(take_part(list, ','), entry));
      part.ranges.push_back(range);
      if (range.count > kMostHosts || (part.count += range.count) > kMostHosts) return too_many_hosts(entry);
    } while (!is_last);
    hosts *= part.count;
    if (hosts > kMostHosts) return too_many_hosts(entry);
    parts.push_back(std::move(part));
    text.remove_prefix(close + 1);
  }
  return parts;
}

/// The text of number `at` of the ranges of a part.
std::string number_at(const Part& part, std::uint64_t at) {
  auto range = part.ranges.begin();
  for (; at >= range->count; ++range) at -= range->count;
  return fmt::format("{:0{}}", range->first + at, range->width);
}

/// All names that a text with ranges stands for.
Result<std::vector<std::string>> names_of(std::string_view text, std::string_view entry) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Part> parts, parts_of(text, entry));
  std::uint64_t count = 1;
  for (const Part& part : parts) count *= part.count;
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    std::uint64_t left = i, weight = count;
    for (const Part& part : parts) {
      weight /= part.count;
      name += part.ranges.empty() ? std::string(part.text) : number_at(part, left / weight);
      left %= weight;
    }
    TUTTI_ASSIGN_OR_RETURN(name, parse_host_name(name));
    names.push_back(std::move(name));
  }
  return names;
}

/// A list that grows by its entries.
class HostList {
 public:
  /// Errors: invalid_argument if there are too many of them.
  Status add(std::string name, int slots) {
    if (++entries_ > kMostEntries) {
      return error(Code::invalid_argument, "the list has more than {} entries, and names hosts again and again",
                   kMostEntries);
    }
    const auto [known, is_new] = numbers_.emplace(name, hosts_.size());
    if (is_new) {
      if (hosts_.size() == kMostHosts) return too_many_hosts(name);
      hosts_.push_back({.name = std::move(name), .slots = 0});
    }
    NamedHost& host = hosts_[known->second];
    host.slots += slots;
    if (host.slots <= kMostSlots) return {};
    return error(Code::invalid_argument,
                 "host '{0}' is named several times and has {1} slots in all: 1 to {2}, did you mean '{0}:{2}'?",
                 host.name, host.slots, kMostSlots);
  }

  std::vector<NamedHost> take() { return std::move(hosts_); }

 private:
  std::vector<NamedHost> hosts_;
  std::unordered_map<std::string, std::size_t> numbers_;  ///< of each name in hosts_
  std::size_t entries_ = 0;
};

Result<int> slots_from(std::string_view text, std::string_view name) {
  return parse_number(text, fmt::format("a number of slots of host '{}'", shown(name)), 1, kMostSlots);
}

/// `NAME[:SLOTS]`, where ranges may be in the name.
struct Entry {
  std::string_view text;  ///< all of it
  std::string_view name;
  std::optional<int> slots;
};

Result<Entry> entry_of(std::string_view text) {
  const std::size_t close = text.rfind(']');
  const std::size_t colon = text.find(':', close == std::string_view::npos ? 0 : close);
  Entry entry{.text = text, .name = text.substr(0, colon), .slots = {}};
  if (colon == std::string_view::npos) return entry;
  const std::string_view number = text.substr(colon + 1);
  if (number.empty()) {
    return error(Code::invalid_argument, "'{}': a number of slots comes after the colon, as in a:2,b:2", shown(text));
  }
  if (number.find(':') != std::string_view::npos) return too_many_colons(text, "a number of slots");
  TUTTI_ASSIGN_OR_RETURN(entry.slots, slots_from(number, entry.name));
  return entry;
}

Result<std::vector<std::string>> names_of(const Entry& entry) {
  const std::string_view name = entry.name.substr(entry.name.rfind('@') + 1);
  if (name.find('[') != std::string_view::npos && !name.starts_with('[')) return names_of(entry.name, entry.text);
  TUTTI_ASSIGN_OR_RETURN(std::string one, parse_host_name(entry.name));
  return std::vector{std::move(one)};
}

/// Adds all entries of `text` to `hosts`. `slots`: of those that give no number of their own.
Status add_entries(std::string_view text, std::optional<int> slots, HostList& hosts) {
  bool is_last = false;
  do {
    const std::size_t before = text.size();
    const std::string_view part = take_part(text, ',');
    is_last = part.size() == before;
    TUTTI_ASSIGN_OR_RETURN(const Entry entry, entry_of(part));
    if (entry.slots && slots) {
      return error(Code::invalid_argument, "'{}' has two numbers of slots, {} and {}: leave one of them out",
                   shown(entry.text), *entry.slots, *slots);
    }
    TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> names, names_of(entry));
    for (std::string& name : names) {
      TUTTI_RETURN_IF_ERROR(hosts.add(std::move(name), entry.slots.value_or(slots.value_or(1))));
    }
  } while (!is_last);
  return {};
}

/// Takes the next word off a line.
std::string_view take_word(std::string_view& line, std::string_view ends) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(ends));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return word;
}

/// What follows the name on a line: `2`, `slots=2`, `max_slots=4`.
struct LineSlots {
  std::optional<int> slots, most;
};

Result<LineSlots> slots_on_line(std::string_view rest, std::string_view name) {
  static const std::string kEnds = std::string(kBlanks) + "=";
  LineSlots result;
  while (!rest.empty()) {
    const std::string_view word = take_word(rest, kEnds);
    const bool has_key = rest.starts_with('=');
    std::string_view value = word;
    if (has_key) {
      rest.remove_prefix(1);
      value = take_word(rest, kBlanks);
    }
    const bool is_most = has_key && (is_same_name(word, kMaxSlots) || is_same_name(word, "slots_max"));
    if (has_key && !is_most && !is_same_name(word, kSlots)) {
      return error(Code::invalid_argument,
                   "'{}=' after '{}' is not known: a name may be followed by a number, {}= and {}=; leave it out",
                   shown(word), shown(name), kSlots, kMaxSlots);
    }
    std::optional<int>& number = is_most ? result.most : result.slots;
    if (number) {
      return error(Code::invalid_argument, "host '{}' has two numbers of slots, {} and '{}': leave one of them out",
                   shown(name), *number, shown(value));
    }
    TUTTI_ASSIGN_OR_RETURN(number, slots_from(value, name));
  }
  return result;
}

Status add_line(std::string_view line, HostList& hosts) {
  const std::string_view names = take_word(line, kBlanks);
  if (names.empty()) return {};
  TUTTI_ASSIGN_OR_RETURN(const LineSlots after, slots_on_line(line, names));
  if (after.most && after.slots.value_or(1) > *after.most) {
    return error(Code::invalid_argument, "host '{0}' has {1} slots and at most {2}: did you mean '{0} slots={2}'?",
                 shown(names), after.slots.value_or(1), *after.most);
  }
  return add_entries(names, after.slots, hosts);
}

}  // namespace

Result<std::vector<NamedHost>> parse_hosts(std::string_view text) {
  HostList hosts;
  TUTTI_RETURN_IF_ERROR(add_entries(text, {}, hosts));
  return hosts.take();
}

Result<std::vector<NamedHost>> parse_hostfile(std::string_view text) {
  HostList hosts;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const Status status = add_line(line.substr(0, line.find('#')), hosts);
    if (!status.is_ok()) return error(status.code(), "line {}: {}", number, status.message());
  }
  std::vector<NamedHost> all = hosts.take();
  if (all.empty()) return error(Code::invalid_argument, "no line names a host");
  return all;
}

std::string to_text(const std::vector<NamedHost>& hosts) {
  std::string text;
  for (const NamedHost& host : hosts) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

int slots_of(const std::vector<NamedHost>& hosts) {
  int slots = 0;
  for (const NamedHost& host : hosts) slots += host.slots;
  return slots;
}

Result<std::vector<std::string>> parse_nodelist(std::string_view text) {
  for (const char c : {':', '@'}) {
    if (text.find(c) == std::string_view::npos) continue;
    return error(Code::invalid_argument, "'{}' is no list of nodes, as in node[01-04,7],other: it has a '{}'",
                 shown(text), c);
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<NamedHost> hosts, parse_hosts(text));
  std::vector<std::string> names;
  for (NamedHost& host : hosts) names.push_back(std::move(host.name));
  return names;
}

Result<std::vector<int>> parse_tasks_per_node(std::string_view text) {
  const std::string_view all = text;
  const auto wrong = [&] {
    return error(Code::invalid_argument,
                 "'{}' is no list of the tasks of each node, as in 2(x3),1: numbers from 1, of at most {} nodes",
                 shown(all), kMostHosts);
  };
  const auto take = [&](int& value) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return failure == std::errc() && value > 0;
  };
  std::vector<int> tasks;
  for (;;) {
    int count = 0, times = 1;
    if (!take(count)) return wrong();
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      if (!take(times) || !text.starts_with(')')) return wrong();
      text.remove_prefix(1);
    }
    if (static_cast<std::size_t>(times) > kMostHosts - tasks.size()) return wrong();
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), count);
    if (text.empty()) return tasks;
    if (!text.starts_with(',')) return wrong();
    text.remove_prefix(1);
  }
}

}  // namespace tutti
