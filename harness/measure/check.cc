// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/check.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/measure/order.h"
#include "harness/verify/check.h"

namespace tutti::harness {
namespace {

constexpr int kRounds = 2;
/// In a simulation: all generations and slots come round. Long buffers go through their slots within one operation.
constexpr int kSimulatedRounds = 10;
constexpr int kSimulatedLongRounds = 4;
constexpr Count kLongBytes = 16 * 1024;
constexpr int kBarrierRounds = 12;
/// How late the late rank of a barrier is: far longer than a barrier takes where every rank has a core.
constexpr std::int64_t kLateNs = 200'000;

struct Record {
  std::int64_t wrong = 0;
  std::array<char, 1024> reason{};
};

/// What all hosts found, as host 0's row tells it.
Result<Row> conclude(Host& host, const Case& one, const Damage& damage) {
  Record mine{.wrong = damage.wrong};
  std::strncpy(mine.reason.data(), damage.text.c_str(), mine.reason.size() - 1);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Record> all, host.exchange(mine));
  Row row = row_of(one);
  row.verdict = Verdict::ok;
  row.wrong = 0;
  for (const Record& record : all) {
    if (record.wrong == 0) continue;
    if (row.verdict == Verdict::ok) row.reason = record.reason.data();
    row.verdict = Verdict::wrong;
    *row.wrong += record.wrong;
  }
  return row;
}

Result<Damage> check_data(Host& host, Variant& variant) {
  Damage damage;
  RankTimes times;
  for (int round = 1; round <= kRounds; ++round) {
    variant.refill(static_cast<std::uint64_t>(round));
    host.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(variant.run(times));
    host.settle();
    const Damage found = variant.verify();
    if (damage.wrong == 0) damage.text = found.text;
    damage.wrong += found.wrong;
  }
  return damage;
}

Result<Damage> check_barrier_rule(Host& host, Variant& variant) {
  Damage damage;
  RankTimes times;
  for (int round = 0; round < kBarrierRounds; ++round) {
    const int late = round % host.job_ranks();
    host.announce(Activity::operation);
    TUTTI_RETURN_IF_ERROR(host.start_together().status());
    TUTTI_RETURN_IF_ERROR(variant.run(times, late, kLateNs));
    host.settle();
    TUTTI_ASSIGN_OR_RETURN(
        const std::vector<BarrierTimes> all,
        host.exchange(BarrierTimes{.first_leave_ns = *std::min_element(times.leave_ns.begin(), times.leave_ns.end()),
                                   .last_enter_ns = *std::max_element(times.enter_ns.begin(), times.enter_ns.end())}));
    BarrierTimes of_all = all.front();
    for (const BarrierTimes& each : all) {
      of_all.first_leave_ns = std::min(of_all.first_leave_ns, each.first_leave_ns);
      of_all.last_enter_ns = std::max(of_all.last_enter_ns, each.last_enter_ns);
    }
    const CheckResult check = check_barrier(of_all);
    if (check.is_ok() || host.index() != 0) continue;
    damage.wrong += check.wrong;
    damage.text = fmt::format("with rank {} late, {}", late, check.diagnosis);
  }
  return damage;
}

Result<Damage> check_in_order(Variant& variant, Order& order) {
  order.begin(case_id(variant.instance()));
  return variant.run_simulated(order, variant.instance().bytes > kLongBytes ? kSimulatedLongRounds : kSimulatedRounds);
}

}  // namespace

Result<Row> check_case(Host& host, Variant& variant) {
  if (host.order() != nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const Damage damage, check_in_order(variant, *host.order()));
    return conclude(host, variant.instance(), damage);
  }
  const bool is_barrier = variant.instance().collective == Collective::barrier;
  TUTTI_ASSIGN_OR_RETURN(const Damage damage,
                         is_barrier ? check_barrier_rule(host, variant) : check_data(host, variant));
  return conclude(host, variant.instance(), damage);
}

}  // namespace tutti::harness
