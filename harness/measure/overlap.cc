// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/overlap.h"

#include <algorithm>
#include <array>

#include "harness/machine/clock.h"
#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {
namespace {

constexpr std::size_t kKinds = 4;  // pure, computing, overlapped, called
constexpr std::size_t kRoundsTogether = 10;
constexpr std::size_t kMostRounds = 200;
/// Ranks compute for as long as the operation takes, and where that is next to nothing for this long.
constexpr double kLeastComputingUs = 0.1;

/// One runner's part of a call.
struct OverlapCall {
  std::int64_t enter_ns = 0;
  std::int64_t leave_ns = 0;
  std::int64_t late_ns = 0;
};
using OverlapRounds = std::array<std::array<OverlapCall, kKinds>, kRoundsTogether>;

class OverlapOnRunner {
 public:
  OverlapOnRunner(Runner& runner, Variant& variant, const OverlapOptions& options)
      : runner_(runner), variant_(variant), options_(options), salt_(options.salt), compute_(options.compute) {
    if (compute_) return;
    compute_ = [work = Computation::lasting(std::max(options.pure_us, kLeastComputingUs))](int index, int parts) {
      work.run(index, parts);
    };
  }

  Result<OverlapResult> run() {
    for (std::size_t made = 0; made < kMostRounds;) {
      OverlapRounds mine{};
      TUTTI_ASSIGN_OR_RETURN(const std::size_t rounds, make_rounds(mine));
      made += rounds;
      if (is_checked_) {
        add_operation(damage_, variant_.verify());  // the last of the calls that were timed
        TUTTI_RETURN_IF_ERROR(verify_one());
      }
      TUTTI_ASSIGN_OR_RETURN(const std::vector<OverlapRounds> all, runner_.exchange(mine));
      for (std::size_t round = 0; round < rounds; ++round) add(all, round);
      if (instant_ns_ >= options_.end_ns) break;
    }
    TUTTI_ASSIGN_OR_RETURN(const Damage damage, damage_of_all(runner_, variant_.instance(), damage_));
    result_.wrong = damage.wrong;
    result_.reason = damage.text;
    return std::move(result_);
  }

 private:
  /// As many as there is time for, at least one; the same number on all runners.
  Result<std::size_t> make_rounds(OverlapRounds& mine) {
    variant_.refill(++salt_);
    std::size_t rounds = 0;
    do {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        if (variant_.instance().is_in_place) variant_.refill(salt_);
        if (poisons_) variant_.poison_places(++places_);
        TUTTI_RETURN_IF_ERROR(make_call(kind));
        const std::int64_t enter_ns = runner_.clock().common(times_.enter_ns.front());
        mine[rounds][kind] = {.enter_ns = enter_ns,
                              .leave_ns = runner_.clock().common(times_.leave_ns.front()),
                              .late_ns = enter_ns - instant_ns_};
      }
      ++rounds;
    } while (rounds < kRoundsTogether && instant_ns_ < options_.end_ns);
    return rounds;
  }

  Status make_call(std::size_t kind) {
    variant_.announce();
    TUTTI_RETURN_IF_ERROR(start(runner_, options_.start));
    switch (kind) {
      case 0:
        TUTTI_RETURN_IF_ERROR(variant_.run(times_));
        break;
      case 1:
        times_.enter_ns.assign(1, runner_.now_ns());
        compute_(0, 1);
        times_.leave_ns.assign(1, runner_.now_ns());
        break;
      default:
        TUTTI_RETURN_IF_ERROR(variant_.run_overlapped(times_, compute_, kind == 2 ? 0 : options_.calls));
    }
    TUTTI_ASSIGN_OR_RETURN(instant_ns_, runner_.last_start());
    runner_.settle();
    return {};
  }

  /// One more on other data, in turn without and with calls.
  Status verify_one() {
    variant_.refill(++salt_);
    TUTTI_RETURN_IF_ERROR(make_call(2 + verified_++ % 2));
    add_operation(damage_, variant_.verify());
    return {};
  }

  void add(const std::vector<OverlapRounds>& all, std::size_t round) {
    std::array<double, kKinds> times_us{};
    bool is_late = false;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      OverlapCall merged = all.front()[round][kind];
      for (const OverlapRounds& runner : all) {
        const OverlapCall& one = runner[round][kind];
        merged.enter_ns = std::min(merged.enter_ns, one.enter_ns);
        merged.leave_ns = std::max(merged.leave_ns, one.leave_ns);
        merged.late_ns = std::max(merged.late_ns, one.late_ns);
      }
      times_us[kind] = static_cast<double>(merged.leave_ns - merged.enter_ns) * 1e-3;
      is_late |= static_cast<double>(merged.late_ns) * 1e-3 > most_late_us_;
    }
    if (is_late && options_.start.how == Synchronisation::roundtime && runner_.count() > 1) return;
    result_.pure_us.push_back(times_us[0]);
    result_.computing_us.push_back(times_us[1]);
    result_.overlapped_us.push_back(times_us[2]);
    result_.called_us.push_back(times_us[3]);
  }

  Runner& runner_;
  Variant& variant_;
  const OverlapOptions& options_;
  std::uint64_t salt_;
  Compute compute_;
  const bool is_checked_ = options_.conditions.checking != Checking::none;
  const bool poisons_ = is_checked_ && variant_.instance().buffers != Buffers::shared;  ///< as block.h says
  std::uint64_t places_ = 0;                                                            ///< draw of the last ones
  RankTimes times_;
  std::int64_t instant_ns_ = 0;  ///< of the last call
  const Tolerance tolerance_ = tolerance_of(runner_);
  const double most_late_us_ = std::max(tolerance_.least_us, tolerance_.share* options_.pure_us);
  std::size_t verified_ = 0;
  Damage damage_;
  OverlapResult result_;
};

}  // namespace

double overlap_percent(double pure, double computing, double overlapped) {
  return 100 * std::clamp((pure + computing - overlapped) / std::min(pure, computing), 0.0, 1.0);
}

Result<OverlapResult> measure_overlap(Runner& runner, Variant& variant, const OverlapOptions& options) {
  return OverlapOnRunner(runner, variant, options).run();
}

}  // namespace tutti::harness::measure
