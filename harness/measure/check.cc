// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/check.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "harness/measure/order.h"
#include "harness/measure/rows.h"
#include "harness/verify/check.h"

namespace tutti::harness::measure {
namespace {

constexpr int kRounds = 2;  // at least; where not all ranks contribute to each element, as many as it takes for all
/// Longer buffers go through all slots and segments within one operation: most forms of them have no second one.
constexpr std::int64_t kLongCaseBytes = 256 * 1024;
constexpr std::uint64_t kSaltsOfAForm = 1024;  ///< more than any number of passes
/// In a simulation: all generations and slots come round. Long buffers go through their slots within one operation.
constexpr int kSimulatedRounds = 10;
constexpr int kSimulatedLongRounds = 4;
constexpr Count kSimulatedLongBytes = 16 * 1024;
constexpr int kBarrierRounds = 12;
// Elements of a block that has an operation on special values: enough for all kinds of them, and no more than it takes.
constexpr Count kLeastSpecial = 256;
constexpr Count kMostSpecial = 4096;
/// How late a late rank is: far longer than a barrier takes if every rank has a core. If ranks share
/// cores it is longer than a turn of the run queue, for which a rank that leaves too early may have to wait.
constexpr std::int64_t kLateNs = 200'000;
constexpr std::int64_t kLateOnSharedCoresNs = 5'000'000;

/// Pairs of operations on different data, one right after the other.
constexpr int kTurns = 12;
/// Their salts are those of no other operation of a check.
constexpr std::uint64_t kFirstSaltOfTurns = 8 * kSaltsOfAForm;

std::int64_t late_ns(const Runner& runner) {
  return runner.yields() && runner.count() > 1 ? kLateOnSharedCoresNs : kLateNs;
}

/// How long an operation is watched once it is complete.
constexpr std::int64_t kWatchNs = 100'000;

struct Record {
  std::int64_t wrong = 0;
  int wrong_outputs = 0;
  int wrong_rank = -1;
  Reason reason;
};

/// Whether a check has one more operation, on special values.
bool has_special_operation(const Variant& variant) {
  const Case& one = variant.instance();
  const bool is_of_that_length = one.count >= kLeastSpecial && one.count <= kMostSpecial;
  return variant.values() == Values::exact && !is_integer(one.dtype) && is_of_that_length;
}

/// One operation on special values, before the others.
Result<Damage> check_special(Runner& runner, Variant& variant) {
  variant.set_values(Values::special);
  const auto check = [&]() -> Result<Damage> {
    if (runner.order() != nullptr) return variant.run_simulated(*runner.order(), 1);
    return check_operation(runner, variant, {.salt = 0, .is_last = false});
  };
  Result<Damage> damage = check();
  variant.set_values(Values::exact);
  if (damage.is_ok() && damage.value().wrong > 0) damage.value().text += ", on special values";
  return damage;
}

Result<Damage> check_data(Runner& runner, Variant& variant) {
  Damage damage;
  if (has_special_operation(variant)) {
    TUTTI_ASSIGN_OR_RETURN(damage, check_special(runner, variant));
  }
  const Rounds rounds = rounds_of(variant);
  for (int round = 0; round < rounds.number; ++round) {
    const Look look{.salt = rounds.first_salt + static_cast<std::uint64_t>(round),
                    .is_last = round + 1 == rounds.number};
    TUTTI_ASSIGN_OR_RETURN(const Damage found, check_operation(runner, variant, look));
    add_operation(damage, found);
  }
  return damage;
}

/// Pairs of operations without a pause between them, each on data of its own: a rank that begins the second one may
/// not disturb ranks that are still in the first. Every other pair has a late rank.
Result<Damage> check_in_turn(Runner& runner, Variant& variant, Variant& other) {
  Damage damage;
  RankTimes times;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::uint64_t salt = kFirstSaltOfTurns + 2 * static_cast<std::uint64_t>(turn);
    variant.refill(salt);
    other.refill(salt + 1);
    variant.announce();
    const auto late = turn % 2 == 1 ? std::optional(turn / 2 % runner.job_ranks()) : std::nullopt;
    TUTTI_RETURN_IF_ERROR(variant.run(times, late, late_ns(runner)));
    TUTTI_RETURN_IF_ERROR(other.run(times));
    runner.settle();
    for (Variant* const each : {&variant, &other}) {
      Damage found = each->verify({});
      if (found.wrong > 0) {
        found.text += fmt::format(", with a call on other data right {} it", each == &variant ? "behind" : "before");
      }
      add_operation(damage, found);
    }
  }
  return damage;
}

/// Whether any of the runner's ranks has other memory some time after completion: then the damage says so.
Status look_again(const Runner& runner, Variant& variant, const std::vector<std::uint64_t>& at_completion,
                  Damage& damage) {
  TUTTI_RETURN_IF_ERROR(variant.linger(kWatchNs));
  const std::vector<std::uint64_t> afterwards = variant.fingerprints();
  const auto late = std::ranges::mismatch(at_completion, afterwards).in1 - at_completion.begin();
  if (afterwards == at_completion) return {};
  const std::string before = damage.wrong == 0 ? "" : "; when it was, " + damage.text;
  damage.text = fmt::format("rank {}: its memory was written after the operation was complete{}",
                            runner.ranks()[static_cast<std::size_t>(late)], before);
  damage.wrong = std::max<std::int64_t>(damage.wrong, 1);
  damage.tells_cause = true;
  damage.is_late = true;
  return {};
}

}  // namespace

int passes_of(const Variant& variant) {
  const Case& one = variant.instance();
  return variant.values() == Values::exact ? verify::passes_of(one.dtype, one.op, one.ranks) : 1;
}

Rounds rounds_of(const Variant& variant) {
  const Case& one = variant.instance();
  const std::uint64_t form = (one.is_in_place ? 2U : 0U) + (one.buffers == Buffers::shared ? 1U : 0U);
  const bool is_once = one.bytes > kLongCaseBytes && form != 0;
  return {.first_salt = form * kSaltsOfAForm + 1, .number = std::max(is_once ? 1 : kRounds, passes_of(variant))};
}

void add_operation(Damage& damage, const Damage& found) {
  const std::int64_t wrong = damage.wrong + found.wrong;
  // What is seen to come late explains what was missing before, which an operation without a second look calls lost.
  const bool tells_more = (found.tells_cause && !damage.tells_cause) || (found.is_late && !damage.is_late);
  if (damage.wrong == 0 || (found.wrong > 0 && tells_more)) damage = found;
  damage.wrong = wrong;
}

Result<Damage> check_operation(Runner& runner, Variant& variant, const Look& look) {
  RankTimes times;
  variant.refill(look.salt);
  variant.announce();
  TUTTI_RETURN_IF_ERROR(variant.run(times));
  runner.settle();
  std::vector<std::uint64_t> at_completion;
  const bool looks_again = look.sight.afterwards && look.is_last;
  if (looks_again || look.footprints != nullptr) at_completion = variant.fingerprints();
  Damage damage = variant.verify(look.sight);
  if (looks_again) TUTTI_RETURN_IF_ERROR(look_again(runner, variant, at_completion, damage));
  if (look.footprints != nullptr) *look.footprints = std::move(at_completion);
  return damage;
}

Result<Damage> check_barrier_rule(Runner& runner, Variant& variant, const Sight& sight) {
  Damage damage;
  RankTimes times;
  TUTTI_RETURN_IF_ERROR(runner.compare_clocks());
  for (int round = 0; round < kBarrierRounds; ++round) {
    const int late = round % runner.job_ranks();
    variant.announce();
    TUTTI_RETURN_IF_ERROR(runner.start_together().status());
    TUTTI_RETURN_IF_ERROR(variant.run(times, late, late_ns(runner)));
    runner.settle();
    TUTTI_ASSIGN_OR_RETURN(
        const std::vector<BarrierTimes> all,
        runner.exchange(BarrierTimes{.first_leave_ns = runner.clock().common(std::ranges::min(times.leave_ns)),
                                     .last_enter_ns = runner.clock().common(std::ranges::max(times.enter_ns))}));
    BarrierTimes of_all = all.front();  // on clocks that may be off a little
    for (const BarrierTimes& each : all) {
      of_all.first_leave_ns = std::min(of_all.first_leave_ns, each.first_leave_ns);
      of_all.last_enter_ns = std::max(of_all.last_enter_ns, each.last_enter_ns);
    }
    of_all.first_leave_ns += runner.clock().doubt_ns;
    const CheckResult check = check_barrier(of_all);
    if (check.is_ok() || runner.index() != 0 || !sight.barriers) continue;
    damage.wrong += check.wrong;
    damage.text = fmt::format("with rank {} late, {}", late, check.diagnosis);
    damage.tells_cause = true;
  }
  return damage;
}

Result<Damage> check_in_order(Runner& runner, Variant& variant, Order& order) {
  order.begin(case_id(variant.instance()));
  Damage damage;
  if (has_special_operation(variant)) {
    TUTTI_ASSIGN_OR_RETURN(damage, check_special(runner, variant));
  }
  const int rounds = variant.instance().bytes > kSimulatedLongBytes ? kSimulatedLongRounds : kSimulatedRounds;
  TUTTI_ASSIGN_OR_RETURN(const Damage found, variant.run_simulated(order, std::max(rounds, passes_of(variant))));
  add_operation(damage, found);
  return damage;
}

Result<Damage> damage_of_all(Runner& runner, const Case& one, const Damage& mine) {
  const Record record{.wrong = mine.wrong,
                      .wrong_outputs = mine.wrong_outputs,
                      .wrong_rank = mine.wrong_rank,
                      .reason = Reason::of(mine.wrong, mine.text, mine.tells_cause)};
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Record> all, runner.exchange(record));
  const Reason& first = first_reason(all, &Record::reason);
  Damage damage{.text = first.text(), .tells_cause = first.weight == Reason::Weight::cause};
  for (const Record& each : all) {
    if (each.wrong == 0) continue;
    damage.wrong += each.wrong;
    damage.wrong_outputs += each.wrong_outputs;
    if (damage.wrong_rank < 0) damage.wrong_rank = each.wrong_rank;
  }
  if (damage.wrong_outputs == 1 && has_one_result(one.collective) && one.ranks > 2) {
    damage.text +=
        fmt::format("; only rank {}'s result differs, the other ranks have the right one", damage.wrong_rank);
  }
  return damage;
}

Result<Row> check_case(Runner& runner, Variant& variant, Variant* other) {
  const Case& one = variant.instance();
  const auto check = [&] {
    if (runner.order() != nullptr) return check_in_order(runner, variant, *runner.order());
    return one.collective == Collective::barrier ? check_barrier_rule(runner, variant) : check_data(runner, variant);
  };
  TUTTI_ASSIGN_OR_RETURN(Damage mine, check());
  if (other != nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const Damage found, check_in_turn(runner, variant, *other));
    add_operation(mine, found);
  }
  TUTTI_ASSIGN_OR_RETURN(const Damage damage, damage_of_all(runner, one, mine));
  return checked_row(variant, damage, has_data(one.collective) && has_special_operation(variant));
}

}  // namespace tutti::harness::measure
