// SPDX-License-Identifier: Apache-2.0
// The options that are numbers: sizes, ranks, roots and durations. Everything is parsed in whole numbers and checked
// against overflow, so that a slip of the finger is a message and never a sweep of something else.
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "impl/types/names.h"

namespace tutti::harness::cases {
namespace {

constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kSizeForms =
    "4096, 64K, 1.5M, start:stop:xfactor or start:stop:+step; K M G T are binary, also as KB or KiB";

/// What precedes the suffix: a whole number and where it ends.
struct Number {
  std::optional<std::int64_t> value;  ///< empty: no digits, or too large
  std::string_view rest;
  bool is_too_large = false;
};

Number leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (failure == std::errc::result_out_of_range) return {.value = {}, .rest = rest, .is_too_large = true};
  if (failure != std::errc() || text.starts_with('-')) return {.value = {}, .rest = text};
  return {.value = value, .rest = rest};
}

/// A number with or without a fraction, and what follows it.
struct Decimal {
  std::optional<std::int64_t> whole;  ///< empty: no digits, or too large
  std::int64_t tenths = 0;            ///< the fraction's numerator
  std::int64_t of = 1;                ///< the fraction's denominator: a power of 10
  std::string_view rest;
  bool is_too_large = false;

  [[nodiscard]] bool is_above_0() const { return whole && *whole + tenths > 0; }
  [[nodiscard]] bool is_whole() const { return tenths == 0; }
};

/// `1.5K`: at most as many digits after the point as any unit has use for.
Decimal leading_decimal(std::string_view text) {
  constexpr std::int64_t kMostParts = 1'000'000;
  const Number number = leading_number(text);
  Decimal decimal{.whole = number.value, .rest = number.rest, .is_too_large = number.is_too_large};
  const auto digit_at = [&](std::size_t i) {
    return i < number.rest.size() && number.rest[i] >= '0' && number.rest[i] <= '9';
  };
  if (!number.value || !number.rest.starts_with('.') || !digit_at(1)) return decimal;
  std::size_t i = 1;
  for (; digit_at(i) && decimal.of < kMostParts; ++i) {
    decimal.tenths = decimal.tenths * 10 + (number.rest[i] - '0');
    decimal.of *= 10;
  }
  decimal.rest = number.rest.substr(i);
  return decimal;
}

char in_lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Of `K`, `KB` and `KiB`, in either case, 10; of `B` and of nothing 0.
std::optional<int> shift_of(std::string_view suffix) {
  std::string unit;
  for (const char c : suffix) unit += in_lower_case(c);
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.empty()) return 0;
  if (unit.size() == 2 && unit[1] == 'i' && suffix.size() == 3) unit.pop_back();
  const std::size_t index = std::string_view("kmgt").find(unit.front());
  if (unit.size() != 1 || index == std::string_view::npos) return {};
  return static_cast<int>(index + 1) * 10;
}

Status size_too_large(std::string_view text) {
  return error(Code::invalid_argument, "size '{}' is too large: at most {}", shown(text),
               format_bytes(kMaxBytes >> 40 << 40));
}

/// One `start:stop:xfactor` or `start:stop:+step`.
struct SizeRange {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t factor = 0;  ///< 0: step
  std::int64_t step = 0;
};

/// "x4" or "+128" of the range `text`.
Status parse_stride(std::string_view text, std::string_view stride, SizeRange& range) {
  const std::string ends = fmt::format("{}:{}", format_bytes(range.start), format_bytes(range.stop));
  if (stride.starts_with('x')) {
    const Number factor = leading_number(stride.substr(1));
    if (!factor.value || !factor.rest.empty() || *factor.value < 2) {
      return error(Code::invalid_argument,
                   "sizes '{}': the factor '{}' must be a whole number, x2 or more: did you mean '{}:x2'?", shown(text),
                   shown(stride), ends);
    }
    if (range.start == 0) {
      return error(Code::invalid_argument, "sizes '{}': 0 times {} stays 0: did you mean '1:{}:{}'?", shown(text),
                   shown(stride), format_bytes(range.stop), shown(stride));
    }
    range.factor = *factor.value;
    return {};
  }
  if (!stride.starts_with('+')) {
    return error(Code::invalid_argument, "sizes '{}': '{}' must be xfactor or +step: did you mean '{}:x2'?",
                 shown(text), shown(stride), ends);
  }
  TUTTI_ASSIGN_OR_RETURN(range.step, parse_bytes(stride.substr(1)));
  if (range.step > 0) return {};
  return error(Code::invalid_argument, "sizes '{}': the step '{}' must be above 0: did you mean '{}:+1'?", shown(text),
               shown(stride), ends);
}

Result<SizeRange> parse_size_range(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3)
    return error(Code::invalid_argument, "sizes '{}' has too many ':': allowed are {}", shown(text), kSizeForms);
  SizeRange range;
  TUTTI_ASSIGN_OR_RETURN(range.start, parse_bytes(parts[0]));
  TUTTI_ASSIGN_OR_RETURN(range.stop, parse_bytes(parts[1]));
  const std::string_view stride = parts.size() == 3 ? parts[2] : "x2";
  if (range.stop < range.start) {
    return error(Code::invalid_argument, "sizes '{}': stop {} is before start {}: did you mean '{}:{}:{}'?",
                 shown(text), shown(parts[1]), shown(parts[0]), shown(parts[1]), shown(parts[0]), shown(stride));
  }
  if (parts.size() == 2) {
    return error(Code::invalid_argument, "sizes '{}' needs a factor or a step: did you mean '{}:x2'?", shown(text),
                 shown(text));
  }
  TUTTI_RETURN_IF_ERROR(parse_stride(text, stride, range));
  return range;
}

/// Appends the sizes of `range` until there are too many.
void append_range(const SizeRange& range, Distinct<std::int64_t>& sizes) {
  for (std::int64_t size = range.start; sizes.values().size() <= kMaxSizes;) {
    sizes.add(size);
    const bool is_last = range.factor > 0 ? size > range.stop / range.factor : size > range.stop - range.step;
    if (is_last) return;
    size = range.factor > 0 ? size * range.factor : size + range.step;
  }
}

/// Whole numbers in [least, most]: what ranks and roots are.
struct Bounds {
  std::string_view kind;  ///< singular
  int least;
  int most;
  bool is_list = true;
};

Result<int> parse_bounded(std::string_view text, const Bounds& bounds) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc::invalid_argument || end != text.data() + text.size()) {
    const std::string range = bounds.is_list ? fmt::format(" or '{}:4'", bounds.least) : std::string();
    return error(Code::invalid_argument, "{} '{}' is not a whole number: allowed are {} to {}, such as '2'{}",
                 bounds.kind, shown(text), bounds.least, bounds.most, range);
  }
  if (failure == std::errc::result_out_of_range) value = text.starts_with('-') ? bounds.least - 1 : bounds.most + 1;
  if (value >= bounds.least && value <= bounds.most) return static_cast<int>(value);
  return error(Code::invalid_argument, "{} '{}' is out of range: allowed are {} to {}: did you mean '{}'?", bounds.kind,
               shown(text), bounds.least, bounds.most, value < bounds.least ? bounds.least : bounds.most);
}

/// `4` or `1:128`, appended.
Status append_bounded(std::string_view item, const Bounds& bounds, Distinct<int>& values) {
  const std::vector<std::string_view> ends = split(item, ':');
  if (ends.size() > 2) {
    return error(Code::invalid_argument, "{} '{}' has too many ':': a range is first:last, such as '{}:8'", bounds.kind,
                 shown(item), bounds.least);
  }
  TUTTI_ASSIGN_OR_RETURN(const int first, parse_bounded(ends.front(), bounds));
  TUTTI_ASSIGN_OR_RETURN(const int last, parse_bounded(ends.back(), bounds));
  if (last < first) {
    return error(Code::invalid_argument, "{} '{}': {} is before {}: did you mean '{}:{}'?", bounds.kind, shown(item),
                 last, first, last, first);
  }
  for (int value = first; value <= last; ++value) values.add(value);
  return {};
}

struct DurationUnit {
  std::string_view names;  ///< with blanks between them
  std::chrono::nanoseconds length;
};
constexpr std::array kDurationUnits{
    DurationUnit{"us usec usecs micros microsecond microseconds", std::chrono::microseconds(1)},
    DurationUnit{"ms msec msecs millis millisecond milliseconds", std::chrono::milliseconds(1)},
    DurationUnit{"s sec secs second seconds", std::chrono::seconds(1)},
    DurationUnit{"m min mins minute minutes", std::chrono::minutes(1)},
    DurationUnit{"h hr hrs hour hours", std::chrono::hours(1)}};

/// In either case. Nothing else is left out: a unit is no name of a library.
bool is_of_unit(std::string_view text, const DurationUnit& unit) {
  std::string small;
  for (const char c : text) small += in_lower_case(c);
  const std::vector<std::string_view> names = split(unit.names, ' ');
  return std::ranges::find(names, small) != names.end();
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  const Decimal number = leading_decimal(text);
  if (number.is_too_large) return size_too_large(text);
  const auto shift = shift_of(number.rest);
  if (!number.whole || !shift) {
    return error(Code::invalid_argument, "size '{}' is not a number of bytes\nallowed: {}", shown(text), kSizeForms);
  }
  if (*number.whole > kMaxBytes >> *shift) return size_too_large(text);
  const std::int64_t bytes = *number.whole << *shift;
  // A fraction has at most 20 bits, and a unit 40.
  const std::int64_t parts = number.tenths << *shift;
  if (parts / number.of > kMaxBytes - bytes) return size_too_large(text);
  if (parts % number.of == 0) return bytes + parts / number.of;
  // Of 1.5 the unit may be missing, and 0 is no size near one.
  const std::int64_t below = bytes + parts / number.of;
  const std::string meant = *shift > 0 && below > 0 ? fmt::format(": did you mean '{}'?", below) : std::string();
  return error(Code::invalid_argument, "size '{}' is not a whole number of bytes{}\nallowed: {}", shown(text), meant,
               kSizeForms);
}

Result<std::vector<std::int64_t>> parse_sizes(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("sizes", text));
  Distinct<std::int64_t> sizes;
  for (const std::string_view item : items) {
    SizeRange range;
    if (item.find(':') == std::string_view::npos) {
      TUTTI_ASSIGN_OR_RETURN(range.start, parse_bytes(item));
      range.stop = range.start;
      range.step = 1;
    } else {
      TUTTI_ASSIGN_OR_RETURN(range, parse_size_range(item));
    }
    append_range(range, sizes);
    if (sizes.values().size() <= kMaxSizes) continue;
    return error(Code::invalid_argument, "sizes '{}' are more than {}: did you mean '{}'?", shown(text), kMaxSizes,
                 kDefaultSizes);
  }
  return sizes.values();
}

Result<std::vector<int>> parse_ranks(std::string_view text, int most) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("ranks", text));
  Distinct<int> ranks;
  for (const std::string_view item : items) {
    TUTTI_RETURN_IF_ERROR(append_bounded(item, {.kind = "ranks", .least = 1, .most = most}, ranks));
  }
  return ranks.values();
}

Result<int> parse_launches(std::string_view text) {
  return parse_bounded(text, {.kind = "number of launches", .least = 1, .most = kMaxLaunches, .is_list = false});
}

Result<Choice<int>> parse_roots(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("roots", text));
  Choice<int> roots;
  Distinct<int> values;
  for (const std::string_view item : items) {
    if (item == "all") {
      roots.is_all = true;
    } else {
      TUTTI_RETURN_IF_ERROR(append_bounded(item, {.kind = "root", .least = 0, .most = kMaxRanks - 1}, values));
    }
  }
  if (!roots.is_all) roots.values = values.values();
  return roots;
}

Result<std::vector<int>> parse_windows(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("windows", text));
  Distinct<int> windows;
  for (const std::string_view item : items) {
    TUTTI_RETURN_IF_ERROR(append_bounded(item, {.kind = "window", .least = 1, .most = kMaxWindow}, windows));
  }
  return windows.values();
}

Result<Choice<Pairing>> parse_pairs(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, split_list("pairs", text));
  Choice<Pairing> pairs;
  for (const std::string_view item : items) {
    if (item == "all") {
      pairs.is_all = true;
      continue;
    }
    const std::size_t dash = item.find('-');
    if (item == kNeighbours) {
      append_new(pairs.values, Pairing{});
      continue;
    }
    if (dash == item.npos || dash == 0) {
      const std::vector<std::string> names{std::string(kNeighbours), "all"};
      return error(Code::invalid_argument, "pairs '{}'{}\nallowed: neighbours, all, and two ranks such as '0-1'",
                   shown(item), suggestion(item, names));
    }
    const Bounds bounds{.kind = "rank of a pair", .least = 0, .most = kMaxRanks - 1, .is_list = false};
    Pairing pair;
    TUTTI_ASSIGN_OR_RETURN(pair.first, parse_bounded(item.substr(0, dash), bounds));
    TUTTI_ASSIGN_OR_RETURN(pair.second, parse_bounded(item.substr(dash + 1), bounds));
    if (pair.first == pair.second) {
      return error(Code::invalid_argument,
                   "pairs '{}': a rank is no pair with itself: allowed are two ranks, such as '{}-{}'", shown(item),
                   pair.first, pair.first + 1);
    }
    if (pair.first > pair.second) {
      return error(Code::invalid_argument, "pairs '{}': the lower rank stands first: did you mean '{}-{}'?",
                   shown(item), pair.second, pair.first);
    }
    append_new(pairs.values, pair);
  }
  if (pairs.is_all) pairs.values.clear();
  return pairs;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const Decimal number = leading_decimal(text);
  if (number.is_above_0()) {
    for (const DurationUnit& unit : kDurationUnits) {
      if (!is_of_unit(number.rest, unit)) continue;
      const std::chrono::nanoseconds part = unit.length * number.tenths / number.of;
      if (*number.whole == 0 && part.count() == 0) continue;  // less than the clock can tell
      if (*number.whole <= (std::chrono::nanoseconds::max() - part) / unit.length) {
        return *number.whole * unit.length + part;
      }
      return error(Code::invalid_argument, "duration '{}' is too long: did you mean '1h'?", shown(text));
    }
  }
  return error(Code::invalid_argument, "duration '{}' must be a number above 0 and us, ms, s, m or h, such as '60s'",
               shown(text));
}

Result<std::chrono::nanoseconds> parse_timeout(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::chrono::nanoseconds timeout, parse_duration(text));
  if (timeout >= std::chrono::milliseconds(1)) return timeout;
  return error(Code::invalid_argument, "duration '{}' is too short: at least 1ms, such as '60s'", shown(text));
}

std::string format_bytes(std::int64_t bytes) {
  int unit = 0;
  while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::to_string(bytes) : fmt::format("{}{}", bytes, "KMGT"[unit - 1]);
}

}  // namespace tutti::harness::cases
