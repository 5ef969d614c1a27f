// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/check.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tutti::harness {
namespace {

constexpr int kRounds = 2;
constexpr int kBarrierRounds = 12;
/// How late the late rank of a barrier is: far longer than a barrier takes where every rank has a core.
constexpr std::int64_t kLateNs = 200'000;

struct Record {
  std::int64_t wrong = 0;
  std::array<char, 1024> reason{};
};

struct EnterLeave {
  std::int64_t first_leave = 0;
  std::int64_t last_enter = 0;
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
        const std::vector<EnterLeave> all,
        host.exchange(EnterLeave{.first_leave = *std::min_element(times.leave_ns.begin(), times.leave_ns.end()),
                                 .last_enter = *std::max_element(times.enter_ns.begin(), times.enter_ns.end())}));
    std::int64_t first_leave = all.front().first_leave, last_enter = all.front().last_enter;
    for (const EnterLeave& each : all) {
      first_leave = std::min(first_leave, each.first_leave);
      last_enter = std::max(last_enter, each.last_enter);
    }
    if (first_leave >= last_enter || host.index() != 0) continue;
    ++damage.wrong;
    damage.text = fmt::format("with rank {} late, a rank left the barrier {} ns before the last one had entered", late,
                              last_enter - first_leave);
  }
  return damage;
}

}  // namespace

Result<Row> check_case(Host& host, const Variant::Request& request) {
  TUTTI_ASSIGN_OR_RETURN(Variant variant, Variant::create(host, request));
  const bool is_barrier = request.instance.collective == Collective::barrier;
  TUTTI_ASSIGN_OR_RETURN(const Damage damage,
                         is_barrier ? check_barrier_rule(host, variant) : check_data(host, variant));
  return conclude(host, request.instance, damage);
}

}  // namespace tutti::harness
