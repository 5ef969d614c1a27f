// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/contention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "harness/measure/block.h"
#include "harness/measure/source.h"
#include "harness/statistics/paired.h"
#include "harness/statistics/statistics.h"

namespace tutti::harness::measure {
namespace {

constexpr int kLeastRounds = 8;  ///< an interval of the slowdown needs six
constexpr std::int64_t kMostWarmUpOfGroupNs = 500'000'000;
constexpr std::int64_t kWarmUpPart = 4;  ///< a group warms up for at most 1 / kWarmUpPart of its first block

/// A block of a round: `group` alone, or all groups together.
struct Play {
  std::size_t system = 0;
  int group = 0;
  bool is_together = false;
};

/// What a runner says of its group's series after each block.
struct GroupVote {
  struct OfSeries {
    std::int32_t samples = 0;  ///< that its next block should have
    std::int32_t is_done = 0;
  };
  std::int64_t now_ns = 0;
  std::int32_t is_late = 0;  ///< to too many samples of the block together a rank came late
  std::array<OfSeries, kMostContending> alone{}, together{};
  std::array<float, kMostContending> loop_us{};  ///< how long a sample is, of a stream
};
static_assert(sizeof(GroupVote) <= Runner::kMostBytes);

class ContentionRounds {
 public:
  ContentionRounds(const ContentionPlace& place, std::vector<Variant>& variants, const CellOptions& options)
      : place_(place),
        variants_(variants),
        options_(options),
        source_{.random = std::mt19937_64(options.seed), .salt = options.seed << 32U} {
    for (const Variant& variant : variants) {
      const Series series = series_for(variant.instance(), options);
      all_.push_back({.alone = series, .together = series});
    }
  }

  Status run() {
    // Each runner has read its clock to know what is left for the cell.
    TUTTI_ASSIGN_OR_RETURN(end_ns_, place_.world.agree(place_.world.common_now_ns() + options_.most_time.count()));
    TUTTI_RETURN_IF_ERROR(vote());
    std::vector<Play> order = turns();
    if (!variants_.empty() && variants_.front().instance().cadence == Cadence::streaming) {
      TUTTI_RETURN_IF_ERROR(tune_loops(order));
    }
    for (round_ = 0;; ++round_) {
      if (round_ >= kLeastRounds && are_all_done(order)) break;
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (round_ > 0 && now_ns() >= end_ns_) return conclude();
        const bool has_enough = options_.conditions.iterations > 0 && is_done(order[i]);
        if (has_enough) continue;
        TUTTI_RETURN_IF_ERROR(play(order[i], share_ns(order.size() - i)));
      }
      if (round_ == 0) std::shuffle(order.begin(), order.end(), source_.random);
      std::ranges::reverse(order);
    }
    return conclude();
  }

  [[nodiscard]] std::vector<Contended> take() { return std::move(all_); }

 private:
  [[nodiscard]] std::int64_t now_ns() const { return votes_.front().now_ns; }

  /// In the first round each system's groups come alone before they come together, and are warmed up then.
  [[nodiscard]] std::vector<Play> turns() const {
    std::vector<Play> all;
    for (std::size_t system = 0; system < variants_.size(); ++system) {
      for (int group = 0; group < place_.groups; ++group) all.push_back({.system = system, .group = group});
      all.push_back({.system = system, .is_together = true});
    }
    return all;
  }

  /// Of what is left: in the first round a part for each turn that is left in it.
  [[nodiscard]] std::int64_t share_ns(std::size_t turns_left) const {
    const std::int64_t left = std::max<std::int64_t>(end_ns_ - now_ns(), 0);
    return round_ > 0 ? left : left / static_cast<std::int64_t>(turns_left);
  }

  [[nodiscard]] bool plays(const Play& turn, std::size_t runner) const {
    return turn.is_together || place_.group_of_all[runner] == turn.group;
  }
  [[nodiscard]] bool plays_here(const Play& turn) const {
    return plays(turn, static_cast<std::size_t>(place_.world.index()));
  }
  Series& series_of(const Play& turn) {
    Contended& both = all_[turn.system];
    return turn.is_together ? both.together : both.alone;
  }
  [[nodiscard]] static const GroupVote::OfSeries& vote_of(const GroupVote& vote, const Play& turn) {
    return (turn.is_together ? vote.together : vote.alone)[turn.system];
  }

  [[nodiscard]] bool is_done(const Play& turn) const {
    for (std::size_t runner = 0; runner < votes_.size(); ++runner) {
      if (plays(turn, runner) && vote_of(votes_[runner], turn).is_done == 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool are_all_done(const std::vector<Play>& order) const {
    return std::ranges::all_of(order, [&](const Play& turn) { return is_done(turn); });
  }
  /// The least that one of those who play it asks for.
  [[nodiscard]] int most_samples(const Play& turn) const {
    int most = kMostSamplesPerBlock;
    for (std::size_t runner = 0; runner < votes_.size(); ++runner) {
      if (plays(turn, runner)) most = std::min(most, vote_of(votes_[runner], turn).samples);
    }
    return std::max(most, 1);
  }

  [[nodiscard]] GroupVote::OfSeries vote_for(Series& series) const {
    GroupVote::OfSeries vote{.samples = series.samples_per_block,
                             .is_done = harness::is_done(series, options_) ? 1 : 0};
    if (options_.conditions.iterations > 0) {
      const std::int64_t missing = options_.conditions.iterations - std::ssize(times_of(series, options_));
      vote.samples = static_cast<int>(std::clamp<std::int64_t>(missing, 1, vote.samples));
    }
    return vote;
  }

  /// All runners meet after each block, those that rest too.
  Status vote() {
    GroupVote mine{.now_ns = place_.world.common_now_ns(), .is_late = is_late_ ? 1 : 0};
    for (std::size_t i = 0; i < all_.size(); ++i) {
      mine.alone.at(i) = vote_for(all_[i].alone);
      mine.together.at(i) = vote_for(all_[i].together);
      mine.loop_us.at(i) = static_cast<float>(loops_us_.empty() ? 0 : loops_us_[i]);
    }
    TUTTI_ASSIGN_OR_RETURN(votes_, place_.world.exchange(mine));
    if (std::ranges::any_of(votes_, [](const GroupVote& one) { return one.is_late != 0; })) place_.world.widen_slack();
    is_late_ = false;
    return {};
  }

  /// The loops of a system's groups become equally long.
  Status tune_loops(const std::vector<Play>& order) {
    loops_us_.assign(all_.size(), 0);
    std::vector<double> each_us(all_.size(), 1);
    for (const Play& turn : order) {
      if (turn.is_together) continue;
      TUTTI_RETURN_IF_ERROR(play(turn, (end_ns_ - now_ns()) / 16));
      if (!plays_here(turn)) continue;
      Series& series = series_of(turn);
      each_us[turn.system] = std::max(typical_us(series.blocks.back()), 1e-3);
      series.blocks.back().counts = false;
      tune(series, each_us[turn.system], true);
      loops_us_[turn.system] = each_us[turn.system] * series.operations;
    }
    TUTTI_RETURN_IF_ERROR(vote());
    for (std::size_t system = 0; system < all_.size(); ++system) {
      float longest = 0;
      for (const GroupVote& one : votes_) longest = std::max(longest, one.loop_us.at(system));
      const double operations = std::round(longest / each_us[system]);
      Contended& both = all_[system];
      both.alone.operations = both.together.operations =
          static_cast<int>(std::clamp<double>(operations, kShortestLoop, kLongestLoop));
      both.alone.is_tuned = both.together.is_tuned = true;
      set_samples_per_block(both.alone, each_us[system], options_);
      both.together.samples_per_block = both.alone.samples_per_block;
    }
    return vote();
  }

  [[nodiscard]] double typical_us(const Series::Block& block) const {
    std::vector<double> times;
    for (const Sample& sample : block.samples) times.push_back(time_of(sample, options_.conditions.skew));
    return median_of(std::move(times));
  }
  Status play(const Play& turn, std::int64_t time_ns) {
    const int samples = source_.samples(most_samples(turn));
    const int drawn = source_.below(samples);
    const bool takes_part = plays_here(turn);
    if (takes_part) TUTTI_RETURN_IF_ERROR(run(turn, samples, drawn, time_ns));
    place_.world.rest(!takes_part);
    const Status voted = vote();
    place_.world.rest(false);
    return voted;
  }

  Status run(const Play& turn, int samples, int drawn, std::int64_t time_ns) {
    Series& series = series_of(turn);
    const bool is_cold = !turn.is_together && !series.warm_up_calls;
    const std::int64_t warm_up_ns = std::min(time_ns / kWarmUpPart, kMostWarmUpOfGroupNs);
    Runner& runner = place_.group;
    TUTTI_ASSIGN_OR_RETURN(
        BlockResult result,
        run_block(runner, variants_[turn.system],
                  {.salt = source_.salt + 1,
                   .samples = samples,
                   .operations = series.operations,
                   .conditions = options_.conditions,
                   .chosen = is_cold ? 0 : drawn,
                   .start = {.how = options_.conditions.sync, .together = turn.is_together ? &place_.world : nullptr},
                   .warm_up_end_ns = is_cold ? now_ns() + warm_up_ns : 0,
                   .end_ns = now_ns() + time_ns}));
    source_.salt = result.last_salt;
    if (!series.warm_up_calls) {
      series.first_call_ns = result.first_call_ns;
      series.warm_up_calls = static_cast<std::int64_t>(result.discarded) * series.operations;
    }
    if (series.wrong == 0) series.reason = result.reason;
    series.wrong += result.wrong;
    ++series.rounds;
    is_late_ = turn.is_together && result.late_share > kMostLateSamples;
    series.blocks.push_back(
        {.samples = std::move(result.samples), .trips = result.after, .round = static_cast<int>(round_)});
    set_samples_per_block(series, typical_us(series.blocks.back()), options_);
    return {};
  }

  Status conclude() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      TUTTI_RETURN_IF_ERROR(
          check_afterwards(place_.group, variants_[i], all_[i].alone, source_, options_.conditions.checking));
    }
    return vote();
  }

  const ContentionPlace& place_;
  std::vector<Variant>& variants_;
  const CellOptions& options_;
  Source source_;
  std::vector<Contended> all_;
  std::vector<GroupVote> votes_;
  std::vector<double> loops_us_;  ///< of a stream: how long this group's samples are, by system
  std::int64_t end_ns_ = 0;
  std::int64_t round_ = 0;
  bool is_late_ = false;
};

}  // namespace

Runner runner_in_group(const Runner& world, int group, const std::vector<int>& members) {
  RunnerOptions options = world.options();
  const auto index = static_cast<int>(std::ranges::find(members, world.index()) - members.begin());
  options.runner = index;
  options.runners = options.job_ranks = static_cast<int>(members.size());
  options.ranks = {index};
  options.group = group;
  options.places = {world.index()};
  return {world.board().of_group(members), std::move(options)};
}

Result<std::vector<Contended>> contend(const ContentionPlace& place, std::vector<Variant>& variants,
                                       const CellOptions& options) {
  TUTTI_ASSERT(variants.size() <= kMostContending, "{} systems contend", variants.size());
  ContentionRounds rounds(place, variants, options);
  TUTTI_RETURN_IF_ERROR(rounds.run());
  return rounds.take();
}

std::optional<Slowdown> slowdown_of(const Contended& contended, const CellOptions& options) {
  std::map<int, double> alone_us;
  for (const BlockMedian& one : medians_of_rounds(contended.alone, options)) alone_us[one.round] = one.median_us;
  std::vector<double> differences;
  for (const BlockMedian& one : medians_of_rounds(contended.together, options)) {
    const auto alone = alone_us.find(one.round);
    if (alone != alone_us.end()) differences.push_back(std::log(one.median_us / alone->second));
  }
  if (differences.empty()) return {};
  const MiddleOfPairs middle = middle_of_pairs(differences);
  Slowdown slowdown{.middle = std::exp(middle.middle)};
  if (middle.low) slowdown.low = std::exp(*middle.low);
  if (middle.high) slowdown.high = std::exp(*middle.high);
  return slowdown;
}

Result<std::string> text_of_runner(Runner& runner, int owner, const std::string& mine) {
  struct Part {
    std::array<char, 1024> bytes{};
  };
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> sizes, runner.exchange(std::uint64_t{mine.size()}));
  const auto place = static_cast<std::size_t>(owner);
  std::string text(sizes[place], '\0');
  for (std::size_t at = 0; at < text.size(); at += sizeof(Part)) {
    Part part;
    const std::size_t length = std::min(sizeof(Part), text.size() - at);
    if (runner.index() == owner) std::memcpy(part.bytes.data(), mine.data() + at, length);
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Part> parts, runner.exchange(part));
    std::memcpy(text.data() + at, parts[place].bytes.data(), length);
  }
  return text;
}

}  // namespace tutti::harness::measure
