// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/replay.h"

#include <algorithm>
#include <limits>

#include "harness/machine/clock.h"
#include "harness/measure/check.h"

namespace tutti::harness::measure {
namespace {

/// When one runner's ranks were in a step.
struct StepTimes {
  std::int64_t enter_ns = std::numeric_limits<std::int64_t>::max();  ///< the first
  std::int64_t leave_ns = 0;                                         ///< the last

  void add(const StepTimes& other) {
    enter_ns = std::min(enter_ns, other.enter_ns);
    leave_ns = std::max(leave_ns, other.leave_ns);
  }
  [[nodiscard]] double time_us() const { return static_cast<double>(leave_ns - enter_ns) * 1e-3; }
};

/// The replays of one system on one host.
class Replayer {
 public:
  Replayer(Runner& runner, ReplaySystem& system, const ReplayOptions& options)
      : runner_(runner), system_(system), options_(options), parts_(options.steps + 1), damage_(options.steps) {}

  /// All calls as one sample.
  Status time(std::uint64_t salt, bool counts) {
    for (Variant& variant : system_.variants) variant.refill(salt);
    std::vector<StepTimes> steps(options_.steps);
    TUTTI_RETURN_IF_ERROR(runner_.compare_clocks());
    TUTTI_RETURN_IF_ERROR(runner_.start_together().status());
    for (std::size_t i = 0; i < system_.calls.size(); ++i) TUTTI_RETURN_IF_ERROR(call(i, steps));
    TUTTI_RETURN_IF_ERROR(runner_.compare_clocks());
    for (std::size_t i = 0; i < system_.variants.size(); ++i) verify(i, last_step_of(i));
    if (counts) TUTTI_RETURN_IF_ERROR(keep(steps));
    return {};
  }

  /// Each step is verified before the next one begins.
  Status check(std::uint64_t salt) {
    std::vector<StepTimes> steps(options_.steps);
    for (std::size_t first = 0; first < system_.calls.size();) {
      const std::size_t step = system_.calls[first].step;
      std::size_t end = first;
      for (; end < system_.calls.size() && system_.calls[end].step == step; ++end) {
        system_.variants[system_.calls[end].variant].refill(salt);
      }
      TUTTI_RETURN_IF_ERROR(runner_.start_together().status());
      for (std::size_t i = first; i < end; ++i) TUTTI_RETURN_IF_ERROR(call(i, steps));
      for (std::size_t i = first; i < end; ++i) verify(system_.calls[i].variant, step);
      first = end;
    }
    return {};
  }

  /// With what all runners found to be wrong.
  Result<std::vector<ReplayedPart>> take() {
    struct Found {
      std::int64_t wrong = 0;
      Reason reason;
    };
    ReplayedPart& whole = parts_.back();
    for (std::size_t step = 0; step < options_.steps; ++step) {
      const Damage& mine = damage_[step];
      TUTTI_ASSIGN_OR_RETURN(
          const std::vector<Found> all,
          runner_.exchange(Found{.wrong = mine.wrong, .reason = Reason::of(mine.wrong, mine.text, mine.tells_cause)}));
      ReplayedPart& part = parts_[step];
      for (const Found& found : all) part.wrong += found.wrong;
      part.reason = first_reason(all, &Found::reason).text();
      if (whole.wrong == 0) whole.reason = part.reason;
      whole.wrong += part.wrong;
    }
    return std::move(parts_);
  }

 private:
  Status call(std::size_t index, std::vector<StepTimes>& steps) {
    const ReplayCall& one = system_.calls[index];
    const std::int64_t gap_ns = options_.gaps_ns.empty() ? 0 : options_.gaps_ns[index];
    if (gap_ns > 0) TUTTI_RETURN_IF_ERROR(runner_.look_for(gap_ns, [] { return Status(); }));
    Variant& variant = system_.variants[one.variant];
    variant.announce();
    TUTTI_RETURN_IF_ERROR(variant.run(times_));
    runner_.settle();
    steps[one.step].add({.enter_ns = std::ranges::min(times_.enter_ns), .leave_ns = std::ranges::max(times_.leave_ns)});
    return {};
  }

  [[nodiscard]] std::size_t last_step_of(std::size_t variant) const {
    const auto last = std::ranges::find(system_.calls.rbegin(), system_.calls.rend(), variant, &ReplayCall::variant);
    return last->step;
  }

  void verify(std::size_t variant, std::size_t step) {
    Damage found = system_.variants[variant].verify();
    if (found.wrong > 0) {
      found.text = fmt::format("{}: {}", case_id(system_.variants[variant].instance()), found.text);
      system_.variants[variant].restore_guards();
    }
    add_operation(damage_[step], found);
  }

  Status keep(const std::vector<StepTimes>& steps) {
    const RunnerClock clock = runner_.clock_between();
    StepTimes whole;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const StepTimes mine{.enter_ns = clock.common(steps[step].enter_ns),
                           .leave_ns = clock.common(steps[step].leave_ns)};
      TUTTI_ASSIGN_OR_RETURN(const std::vector<StepTimes> all, runner_.exchange(mine));
      StepTimes together;
      for (const StepTimes& one : all) together.add(one);
      parts_[step].times_us.push_back(together.time_us());
      whole.add(together);
    }
    parts_.back().times_us.push_back(whole.time_us());
    return {};
  }

  Runner& runner_;
  ReplaySystem& system_;
  const ReplayOptions& options_;
  std::vector<ReplayedPart> parts_;
  std::vector<Damage> damage_;  ///< of each step, on this runner
  RankTimes times_;
};

}  // namespace

Result<std::vector<std::vector<ReplayedPart>>> replay(Runner& runner, std::vector<ReplaySystem>& systems,
                                                      const ReplayOptions& options) {
  std::vector<Replayer> replayers;
  for (ReplaySystem& system : systems) replayers.emplace_back(runner, system, options);
  std::uint64_t salt = 1;
  for (Replayer& one : replayers) {
    TUTTI_RETURN_IF_ERROR(one.check(salt));
    TUTTI_RETURN_IF_ERROR(one.time(salt + 1, false));  // to be warm
  }
  ++salt;
  const std::int64_t most = options.iterations > 0 ? options.iterations : kMostReplays;
  for (std::int64_t done = 0; done < most; ++done) {
    const bool may_end = options.iterations == 0 && done >= kLeastReplays;
    TUTTI_ASSIGN_OR_RETURN(const bool is_over, runner.agree(may_end && monotonic_ns() >= options.end_ns));
    if (is_over) break;
    ++salt;
    for (std::size_t i = 0; i < replayers.size(); ++i) {  // ABBA
      TUTTI_RETURN_IF_ERROR(replayers[done % 2 == 0 ? i : replayers.size() - 1 - i].time(salt, true));
    }
  }
  std::vector<std::vector<ReplayedPart>> parts;
  for (Replayer& one : replayers) {
    TUTTI_RETURN_IF_ERROR(one.check(salt + 1));
    TUTTI_ASSIGN_OR_RETURN(parts.emplace_back(), one.take());
  }
  return parts;
}

}  // namespace tutti::harness::measure
