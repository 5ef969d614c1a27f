// SPDX-License-Identifier: Apache-2.0
#include "harness/board/rank_calls.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "impl/types/dtype.h"
#include "impl/types/names.h"
#include "impl/types/number.h"

namespace tutti::harness::board {
namespace {

constexpr std::string_view kCompleted = "completed";
constexpr std::string_view kStarted = "started";

/// What stands before the first `end`, which is taken from `text` with it.
std::string_view take_until(char end, std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

/// `last`: the number of the call before.
Result<StartedCall> call_from_line(std::string_view line, std::uint64_t last) {
  constexpr auto kMostNumber = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (line.size() > kMostCallBytes) {
    return error(Code::invalid_argument, "{} bytes, and at most {} are taken", line.size(), kMostCallBytes);
  }
  if (std::ranges::count(line, ' ') != 4) {
    return error(Code::invalid_argument, "'{}' is not a call's number, state, collective, count and dtype",
                 shown(line));
  }
  StartedCall one;
  TUTTI_ASSIGN_OR_RETURN(
      one.number,
      parse_number(take_until(' ', line), "a call's number behind that of the call before", last + 1, kMostNumber));
  const std::string_view state = take_until(' ', line);
  one.is_complete = state == kCompleted;
  if (!one.is_complete && state != kStarted) {
    return error(Code::invalid_argument, "'{}' is not a call's state, '{}' or '{}'", shown(state), kCompleted,
                 kStarted);
  }
  TUTTI_ASSIGN_OR_RETURN(one.call.collective, parse_collective(take_until(' ', line)));
  TUTTI_ASSIGN_OR_RETURN(one.call.count,
                         parse_number(take_until(' ', line), "a call's count", Count{0}, kMostCallCount));
  TUTTI_ASSIGN_OR_RETURN(one.call.dtype, parse_dtype(line));
  return one;
}

}  // namespace

std::string call_lines(std::span<const StartedCall> calls) {
  std::string lines;
  for (const StartedCall& one : calls) {
    lines += fmt::format("{} {} {} {} {}\n", one.number, one.is_complete ? kCompleted : kStarted,
                         to_string(one.call.collective), has_counts(one.call.collective) ? 0 : one.call.count,
                         to_string(one.call.dtype));
  }
  return lines;
}

Result<std::vector<StartedCall>> calls_from_lines(std::string_view lines) {
  std::vector<StartedCall> calls;
  while (!lines.empty()) {
    if (calls.size() == kMostCalls) return error(Code::invalid_argument, "more than {} calls", kMostCalls);
    const std::uint64_t last = calls.empty() ? 0 : calls.back().number;
    auto call = call_from_line(take_until('\n', lines), last);
    if (!call.is_ok()) return error(Code::invalid_argument, "call {}: {}", calls.size() + 1, call.status().message());
    calls.push_back(std::move(call).value());
  }
  return calls;
}

}  // namespace tutti::harness::board
