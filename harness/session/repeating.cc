// SPDX-License-Identifier: Apache-2.0
#include "harness/session/repeating.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/measure/check.h"
#include "harness/measure/rows.h"
#include "harness/repeat/result_message.h"

namespace tutti::harness::session {
namespace {

struct ResultPart {
  std::array<std::byte, 1024> bytes{};
};
struct ResultLength {
  std::uint64_t bytes = 0;
  std::int32_t rank = -1;  ///< -1: the runner has fewer ranks
};

/// The result of each runner's rank `index`, in parts: runner 0 reports them.
Status report_results(Runner& runner, const Variant& variant, std::size_t index, int call, const Send& send) {
  const bool has_rank = index < runner.ranks().size();
  const std::vector<std::byte> mine = has_rank ? variant.result_bytes(index) : std::vector<std::byte>();
  const ResultLength length{.bytes = mine.size(), .rank = has_rank ? runner.ranks()[index] : -1};
  TUTTI_ASSIGN_OR_RETURN(const std::vector<ResultLength> lengths, runner.exchange(length));
  std::vector<CallResult> results;
  std::size_t longest = 0;
  for (const ResultLength& one : lengths) {
    longest = std::max<std::size_t>(longest, one.bytes);
    CallResult& result =
        results.emplace_back(CallResult{.case_id = case_id(variant.instance()), .call = call, .rank = one.rank});
    if (runner.index() == 0) result.bytes.resize(one.bytes);
  }
  for (std::size_t at = 0; at < longest; at += sizeof(ResultPart)) {
    ResultPart part;
    if (at < mine.size()) std::memcpy(part.bytes.data(), mine.data() + at, std::min(sizeof part, mine.size() - at));
    TUTTI_ASSIGN_OR_RETURN(const std::vector<ResultPart> parts, runner.exchange(part));
    for (std::size_t i = 0; i < parts.size() && runner.index() == 0; ++i) {
      std::vector<std::byte>& bytes = results[i].bytes;
      if (at < bytes.size()) {
        std::memcpy(bytes.data() + at, parts[i].bytes.data(), std::min(sizeof(ResultPart), bytes.size() - at));
      }
    }
  }
  if (runner.index() != 0) return {};
  for (const CallResult& result : results) {
    if (result.rank < 0 || result.bytes.empty()) continue;
    TUTTI_RETURN_IF_ERROR(send_result(result, [&](std::string_view text) { return send("result", text); }));
  }
  return {};
}

}  // namespace

Result<Row> repeat_case(Runner& runner, Variant& variant, const RepeatTask& task, const Send& send) {
  constexpr std::uint64_t kSaltOfAll = 1;
  const Case& one = variant.instance();
  const int most_ranks_of_runner = (one.ranks + runner.count() - 1) / runner.count();
  Damage mine;
  for (int call = 0; call < task.calls; ++call) {
    TUTTI_ASSIGN_OR_RETURN(const Damage found,
                           check_operation(runner, variant, {.salt = kSaltOfAll, .is_last = false}));
    add_operation(mine, found);
    for (int index = 0; index < most_ranks_of_runner; ++index) {
      TUTTI_RETURN_IF_ERROR(report_results(runner, variant, static_cast<std::size_t>(index), call, send));
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const Damage damage, damage_of_all(runner, one, mine));
  return checked_row(variant, damage, false);
}

}  // namespace tutti::harness::session
