// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/stream.h"

#include <algorithm>
#include <array>
#include <limits>

#include "harness/measure/check.h"

namespace tutti::harness::measure {
namespace {

constexpr double kMicroseconds = 1e-3;  // of nanoseconds
constexpr std::size_t kTimesPerExchange = 240;
static_assert(kTimesPerExchange * sizeof(double) <= Runner::kMostBytes);

/// What one runner found in one round.
struct Finding {
  std::int64_t wrong = 0;
  Reason reason;
};

/// One runner's part of the times.
struct Part {
  double first_us = 0;
  double first_posted_us = 0;
  double sum_us = 0;
  double least_us = std::numeric_limits<double>::max();
  double most_us = 0;
};

class Stream {
 public:
  Stream(Runner& runner, Variant& variant, const StreamOptions& options)
      : runner_(runner), variant_(variant), options_(options) {}

  Result<StreamResult> run() {
    result_.last_salt = options_.salt;
    variant_.refill(result_.last_salt);
    TUTTI_RETURN_IF_ERROR(untimed());
    if (options_.checks > 0) variant_.poison_outputs();
    variant_.announce();
    TUTTI_RETURN_IF_ERROR(options_.blocking == Blocking::barrier_untimed ? run_apart() : run_together());
    runner_.settle();
    TUTTI_RETURN_IF_ERROR(gather_times());
    if (options_.times_each) TUTTI_RETURN_IF_ERROR(gather_each());
    TUTTI_RETURN_IF_ERROR(check());
    return std::move(result_);
  }

 private:
  Status untimed() {
    variant_.announce();
    TUTTI_RETURN_IF_ERROR(variant_.run(times_));
    runner_.settle();
    return {};
  }

  /// An operation as a graph of its own.
  Status replayed() {
    variant_.announce();
    TUTTI_RETURN_IF_ERROR(variant_.run_loop(times_, {.launches = 1}));
    runner_.settle();
    return {};
  }

  Status run_together() {
    Loop loop{.operations = options_.operations,
              .grouped = options_.grouped,
              .launches = options_.launches,
              .ends_each = options_.blocking != Blocking::none};
    loop.start = [this] { return runner_.start_together().status(); };
    if (options_.blocking == Blocking::barrier_timed) {
      loop.between = [this] { return runner_.exchange(char{}).status(); };
    }
    std::vector<std::vector<std::int64_t>> leaves;
    std::vector<std::vector<double>> intervals;
    std::int64_t posted_ns = 0;
    loop.posted_ns = &posted_ns;
    if (options_.times_each) {
      loop.leaves_ns = &leaves;
      loop.intervals_us = &intervals;
    }
    TUTTI_RETURN_IF_ERROR(variant_.run_loop(times_, loop));
    for (std::size_t i = 0; i < times_.enter_ns.size(); ++i) {
      total_ns_.push_back(times_.leave_ns[i] - times_.enter_ns[i]);
    }
    posted_ns_ = posted_ns == 0 ? total_ns_.front() : posted_ns - times_.enter_ns.front();
    if (!intervals.empty()) {
      take(intervals);
    } else if (options_.times_each) {
      take(leaves);
    }
    return {};
  }

  /// Times by a stream's own clock: of each group or launch.
  void take(const std::vector<std::vector<double>>& intervals) {
    const double parts = operations_in_all() / static_cast<double>(intervals.front().size());
    each_us_.resize(intervals.front().size(), 0);
    for (const std::vector<double>& of_rank : intervals) {
      for (std::size_t k = 0; k < each_us_.size(); ++k) each_us_[k] = std::max(each_us_[k], of_rank[k] / parts);
    }
  }

  /// Times by the host's clock, from leave to leave. What was captured has one time as a whole: the mean.
  void take(const std::vector<std::vector<std::int64_t>>& leaves) {
    if (options_.launches > 0) {
      const auto longest = static_cast<double>(*std::ranges::max_element(total_ns_));
      each_us_.assign(1, longest * kMicroseconds / operations_in_all());
      return;
    }
    each_us_.resize(static_cast<std::size_t>(options_.operations), 0);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      std::int64_t before = times_.enter_ns[i];
      for (std::size_t k = 0; k < each_us_.size(); ++k) {
        each_us_[k] = std::max(each_us_[k], static_cast<double>(leaves[i][k] - before) * kMicroseconds);
        before = leaves[i][k];
      }
    }
  }

  Status run_apart() {
    total_ns_.assign(runner_.ranks().size(), 0);
    std::vector<std::vector<double>> intervals;
    Loop loop{.grouped = options_.grouped, .start = [this] { return runner_.start_together().status(); }};
    if (options_.times_each) loop.intervals_us = &intervals;
    for (int k = 0; k < options_.operations; ++k) {
      if (k > 0) variant_.announce();
      TUTTI_RETURN_IF_ERROR(variant_.run_loop(times_, loop));
      double longest_us = 0;
      for (std::size_t i = 0; i < total_ns_.size(); ++i) {
        const std::int64_t took = times_.leave_ns[i] - times_.enter_ns[i];
        total_ns_[i] += took;
        const double us = intervals.empty() ? static_cast<double>(took) * kMicroseconds : intervals[i].front();
        longest_us = std::max(longest_us, us / options_.grouped);
      }
      each_us_.push_back(longest_us);
    }
    posted_ns_ = total_ns_.front();
    return {};
  }

  [[nodiscard]] double operations_in_all() const {
    return static_cast<double>(options_.operations) * options_.grouped * std::max(1, options_.launches);
  }

  Status gather_times() {
    Part mine;
    const auto us_of = [this](std::int64_t total_ns) {
      return static_cast<double>(total_ns) * kMicroseconds / operations_in_all();
    };
    for (const std::int64_t total : total_ns_) {
      const double us = us_of(total);
      mine.sum_us += us;
      mine.least_us = std::min(mine.least_us, us);
      mine.most_us = std::max(mine.most_us, us);
    }
    mine.first_us = us_of(total_ns_.front());
    mine.first_posted_us = us_of(posted_ns_);
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Part> all, runner_.exchange(mine));
    Part sum = all.front();
    for (std::size_t i = 1; i < all.size(); ++i) {
      sum.sum_us += all[i].sum_us;
      sum.least_us = std::min(sum.least_us, all[i].least_us);
      sum.most_us = std::max(sum.most_us, all[i].most_us);
    }
    result_.rank0_us = sum.first_us;
    result_.rank0_posted_us = sum.first_posted_us;
    result_.mean_us = sum.sum_us / runner_.job_ranks();
    result_.least_us = sum.least_us;
    result_.most_us = sum.most_us;
    return {};
  }

  Status gather_each() {
    using Times = std::array<double, kTimesPerExchange>;
    if (options_.tells_runners) result_.each_us_of_runners.resize(static_cast<std::size_t>(runner_.count()));
    for (std::size_t first = 0; first < each_us_.size(); first += kTimesPerExchange) {
      const std::size_t count = std::min(kTimesPerExchange, each_us_.size() - first);
      Times mine{};
      std::copy_n(each_us_.begin() + static_cast<std::ptrdiff_t>(first), count, mine.begin());
      TUTTI_ASSIGN_OR_RETURN(const std::vector<Times> all, runner_.exchange(mine));
      for (std::size_t k = 0; k < count; ++k) {
        double most = 0;
        for (const Times& one : all) most = std::max(most, one[k]);
        result_.each_us.push_back(most);
      }
      for (std::size_t runner = 0; runner < result_.each_us_of_runners.size(); ++runner) {
        std::vector<double>& times = result_.each_us_of_runners[runner];
        times.insert(times.end(), all[runner].begin(), all[runner].begin() + static_cast<std::ptrdiff_t>(count));
      }
    }
    return {};
  }

  /// Groups of different sizes have different passes: all do as many rounds as the one that needs most.
  Result<int> rounds() {
    if (options_.checks == 0) return 0;
    TUTTI_ASSIGN_OR_RETURN(const std::vector<int> all,
                           runner_.exchange(std::max(options_.checks, passes_of(variant_))));
    return *std::ranges::max_element(all);
  }

  /// Rounds until one is bad.
  Status check() {
    TUTTI_ASSIGN_OR_RETURN(const int rounds, this->rounds());
    for (int round = 0; round < rounds && result_.wrong == 0; ++round) {
      if (round > 0 || variant_.instance().is_in_place) {
        variant_.refill(++result_.last_salt);
        TUTTI_RETURN_IF_ERROR(options_.launches > 0 ? replayed() : untimed());
      }
      const Damage damage = variant_.verify();
      const Finding mine{.wrong = damage.wrong, .reason = Reason::of(damage.wrong, damage.text)};
      TUTTI_ASSIGN_OR_RETURN(const std::vector<Finding> all, runner_.exchange(mine));
      result_.reason = first_reason(all, &Finding::reason).text();
      for (const Finding& one : all) {
        result_.wrong += one.wrong;
        result_.failed_checks += one.wrong > 0 ? 1 : 0;
      }
    }
    return {};
  }

  Runner& runner_;
  Variant& variant_;
  const StreamOptions& options_;
  RankTimes times_;
  std::vector<std::int64_t> total_ns_;  ///< of the loop, by index of the rank
  std::int64_t posted_ns_ = 0;          ///< until this runner had posted the loop
  std::vector<double> each_us_;         ///< each operation, on this runner's slowest rank for it
  StreamResult result_;
};

}  // namespace

Result<StreamResult> measure_stream(Runner& runner, Variant& variant, const StreamOptions& options) {
  return Stream(runner, variant, options).run();
}

Status warm_up(Runner& runner, Variant& variant, int operations) {
  if (operations < 1) return {};
  RankTimes times;
  variant.announce();
  TUTTI_RETURN_IF_ERROR(variant.run_loop(times, {.operations = operations}));
  runner.settle();
  return {};
}

}  // namespace tutti::harness::measure
