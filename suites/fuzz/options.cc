// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/faults/fault.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

using namespace harness;

/// As an option would take it.
std::string printed(std::int64_t bytes) { return format_bytes(bytes); }
std::string printed(int number) { return fmt::to_string(number); }
std::string printed(std::chrono::nanoseconds time) {
  return fmt::format("{}.{:03}us", time.count() / 1000, time.count() % 1000);
}
std::string printed(const std::string& name) { return name; }
std::string printed(RanksAs ranks_as) { return std::string(to_string(ranks_as)); }
std::string printed(const Counts& counts) { return counts.name; }
std::string printed(const Pairing& pair) {
  return pair.is_one_pair() ? fmt::format("{}-{}", pair.first, pair.second) : std::string(kNeighbours);
}
template <class Kind>
requires std::is_enum_v<Kind> std::string printed(Kind kind) { return std::string(to_string(kind)); }
template <class T>
std::string printed(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(printed(value));
  return fmt::format("{}", fmt::join(texts, ","));
}
template <class T>
std::string printed(const Choice<T>& choice) {
  return choice.is_all ? "all" : printed(choice.values);
}

template <class T>
bool is_same(const T& one, const T& other) {
  return one == other;
}
template <class T>
bool is_same(const Choice<T>& one, const Choice<T>& other) {
  return one.is_all == other.is_all && (one.is_all || one.values == other.values);
}

template <class T, Result<T> (*parse)(std::string_view)>
void there_and_back(std::string_view text) {
  const Result<T> value = parse(text);
  if (!value.is_ok()) return check_message(value.status());
  const std::string again = printed(value.value());
  const Result<T> same = parse(again);
  TUTTI_ASSERT(same.is_ok() && is_same(same.value(), value.value()), "'{}' is printed as '{}'", text, again);
}

/// What has no text of its own: only that it is read.
template <auto parse>
void there(std::string_view text) {
  if (const auto value = parse(text); !value.is_ok()) check_message(value.status());
}

/// A path would leave the text.
void patterns(std::string_view text) {
  if (text.find_first_of("./~") == text.npos) there_and_back<std::vector<Counts>, parse_counts_list>(text);
}

Result<std::vector<std::string>> backends(std::string_view text) {
  return harness::parse_backends(text, {"tutti", "openmpi"});
}

Result<std::vector<int>> ranks_list(std::string_view text) { return parse_ranks(text); }
Result<std::vector<std::string>> algorithms(std::string_view text) { return parse_algorithms(text); }

struct Option {
  std::string_view name;
  void (*read)(std::string_view);
};
constexpr std::array kOptions{
    Option{"sizes", there_and_back<std::vector<std::int64_t>, parse_sizes>},
    Option{"bytes", there_and_back<std::int64_t, parse_bytes>},
    Option{"ranks", there_and_back<std::vector<int>, ranks_list>},
    Option{"roots", there_and_back<Choice<int>, parse_roots>},
    Option{"collectives", there_and_back<std::vector<Collective>, parse_collectives>},
    Option{"dtypes", there_and_back<Choice<Dtype>, parse_dtypes>},
    Option{"ops", there_and_back<Choice<Op>, parse_ops>},
    Option{"placement", there_and_back<std::vector<Placement>, parse_placements>},
    Option{"buffers", there_and_back<std::vector<Buffers>, parse_buffer_kinds>},
    Option{"algorithms", there_and_back<std::vector<std::string>, algorithms>},
    Option{"backends", there_and_back<std::vector<std::string>, backends>},
    Option{"transports", there_and_back<std::vector<std::string>, parse_transports>},
    Option{"counts", patterns},
    Option{"window", there_and_back<std::vector<int>, parse_windows>},
    Option{"pairs", there_and_back<Choice<Pairing>, parse_pairs>},
    Option{"ranks-as", there_and_back<RanksAs, parse_ranks_as>},
    Option{"cadence", there_and_back<Cadence, parse_cadence>},
    Option{"bind", there_and_back<Bind, parse_bind>},
    Option{"check", there_and_back<Checking, parse_checking>},
    Option{"cache", there_and_back<CacheState, parse_cache_state>},
    Option{"launches", there_and_back<int, parse_launches>},
    Option{"duration", there_and_back<std::chrono::nanoseconds, parse_duration>},
    Option{"faults", there_and_back<std::vector<Fault>, parse_faults>},
};

}  // namespace

void options(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto* const option = std::ranges::find(kOptions, input.substr(0, end), &Option::name);
  if (option != kOptions.end()) option->read(input.substr(std::min(end + 1, input.size())));
}

}  // namespace tutti::fuzz
