// SPDX-License-Identifier: Apache-2.0
// Tasks run in the order that a seed draws. Every algorithm is right in many orders. The same seed takes the same
// steps. A fault that shows only where a rank is late, or ahead, is found, where taking turns does not find it.
#include "harness/measure/order.h"

#include <functional>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/tutti/backend.h"
#include "harness/measure/check.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti::harness {
namespace {

using testing::HasSubstr;

struct Setting {
  Case one;
  std::optional<std::uint64_t> seed = std::nullopt;  ///< without one ranks take turns
  std::optional<Schedule> broken = std::nullopt;     ///< takes the algorithm's place, unproved
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

struct Outcome {
  Result<Row> row;
  std::uint64_t steps = 0;
  std::uint64_t trace = 0;
};

Result<Row> check(const Setting& setting, Runner& runner, Order* order) {
  const int ranks = setting.one.ranks;
  TUTTI_ASSIGN_OR_RETURN(const auto domain, local::open_domain(local::shape_for(ranks)));
  TUTTI_ASSIGN_OR_RETURN(
      auto backend,
      OwnBackend::create(*domain, runner.ranks(),
                         {.waiting = Waiting::yield, .timeout = std::chrono::seconds(30), .prove_plans = false},
                         {.pace = order}));
  if (setting.broken) backend->set_substitute([&](const Case&, const Problem&) { return setting.broken; });
  TUTTI_ASSIGN_OR_RETURN(
      Variant variant,
      Variant::create(runner,
                      {.backend = *backend,
                       .memory = [&](const Case& one, std::size_t index) { return backend->allocator(one, index); },
                       .instance = setting.one,
                       .seed = setting.seed.value_or(1)}));
  return check_case(runner, variant);
}

/// One check on ranks as tasks.
Outcome run(const Setting& setting) {
  const int ranks = setting.one.ranks;
  const BoardMemory memory(ranks);
  std::optional<Order> order;
  if (setting.seed) order.emplace(*setting.seed, ranks);
  RunnerOptions options{
      .job_ranks = ranks, .yields = true, .timeout = setting.timeout, .grace = {}, .order = order ? &*order : nullptr};
  options.ranks.resize(static_cast<std::size_t>(ranks));
  std::iota(options.ranks.begin(), options.ranks.end(), 0);
  Runner runner(memory.board(), options);
  Outcome outcome{.row = check(setting, runner, options.order)};
  if (order) outcome = {.row = outcome.row, .steps = order->steps(), .trace = order->trace()};
  return outcome;
}

Case case_of(Collective collective, std::string_view algorithm, int ranks, Count count) {
  Case one;
  one.collective = collective;
  one.transport = "local";
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.ranks = ranks;
  one.ranks_as = RanksAs::tasks;
  one.count = has_data(collective) ? count : 0;
  one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
  one.algorithm = std::string(algorithm);
  return one;
}

TEST(Order, OfManySeedsLeavesEveryAlgorithmRight) {
  constexpr std::uint64_t kSeeds = 8;  // of each algorithm, others for each
  std::uint64_t seed = 1;
  int checked = 0;
  for (const Collective collective : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_of(collective)) {
      for (const int ranks : {2, 3}) {
        for (std::uint64_t end = seed + kSeeds; seed < end; ++seed) {
          Case one = case_of(collective, algorithm->name, ranks, seed % 4 == 0 ? 1 : 300);
          one.buffers = seed % 2 == 0 ? Buffers::shared : Buffers::private_;
          const Outcome outcome = run({.one = one, .seed = seed});
          ASSERT_TRUE(outcome.row.is_ok()) << "seed " << seed << ": " << outcome.row.status().message();
          EXPECT_EQ(outcome.row.value().verdict, Verdict::ok)
              << case_id(one) << " seed " << seed << ": " << outcome.row.value().reason;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(Order, OfOneSeedTakesTheSameSteps) {
  const Case one = case_of(Collective::all_reduce, "ring", 3, 300);
  const Outcome first = run({.one = one, .seed = 5}), again = run({.one = one, .seed = 5});
  EXPECT_GT(first.steps, 0U);
  EXPECT_EQ(first.steps, again.steps);
  EXPECT_EQ(first.trace, again.trace);
  EXPECT_NE(first.trace, run({.one = one, .seed = 6}).trace);
}

/// An algorithm without one of a rank's steps.
struct Omission {
  std::string name;
  Collective collective;
  std::string algorithm;
  int rank;
  Verb verb;
  int which;  ///< of the rank's steps with that verb
  Buffers buffers = Buffers::private_;
};
void PrintTo(const Omission& omission, std::ostream* out) { *out << omission.name; }

Setting setting_for(const Omission& omission, std::optional<std::uint64_t> seed) {
  Programs programs = programs_of(omission.collective, omission.algorithm, 3);
  Program& program = programs[omission.rank];
  int seen = 0;
  const auto left_out = std::find_if(program.begin(), program.end(), [&](const Step& step) {
    return step.verb == omission.verb && seen++ == omission.which;
  });
  EXPECT_NE(left_out, program.end());
  program.erase(left_out);
  Setting setting{.one = case_of(omission.collective, omission.algorithm, 3, 300), .seed = seed};
  setting.one.buffers = omission.buffers;
  setting.broken = programs.schedule();
  return setting;
}

class Omitted : public testing::TestWithParam<Omission> {};

TEST_P(Omitted, IsFoundByASeedAndNotByTakingTurns) {
  const Outcome in_turn = run(setting_for(GetParam(), std::nullopt));
  ASSERT_TRUE(in_turn.row.is_ok()) << in_turn.row.status().message();
  EXPECT_EQ(in_turn.row.value().verdict, Verdict::ok) << in_turn.row.value().reason;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = run(setting_for(GetParam(), seed));
    if (!outcome.row.is_ok() || outcome.row.value().verdict != Verdict::wrong) continue;
    if (++found > 1) continue;
    const Outcome again = run(setting_for(GetParam(), seed));
    EXPECT_EQ(again.trace, outcome.trace) << "seed " << seed;
    EXPECT_EQ(again.row.value().reason, outcome.row.value().reason);
  }
  EXPECT_GT(found, 0);
  RecordProperty("seeds_that_found_it_of_20", found);
}

TEST(Order, ShowsADeadlockAtOnceAndNamesTheStep) {
  const Setting setting = setting_for({"", Collective::all_reduce, "one_shot", 1, Verb::signal, 0}, std::uint64_t{1});
  const Outcome outcome = run(setting);
  ASSERT_FALSE(outcome.row.is_ok());
  EXPECT_EQ(outcome.row.status().code(), Code::timeout);
  EXPECT_THAT(std::string(outcome.row.status().message()), HasSubstr("no rank can go on; "));
  EXPECT_THAT(std::string(outcome.row.status().message()), HasSubstr("of rank 1"));
}

TEST(Turns, EndAtTheDeadlineWithAReportOfEveryRank) {
  Setting setting = setting_for({"", Collective::all_reduce, "one_shot", 1, Verb::signal, 0}, std::nullopt);
  setting.timeout = std::chrono::milliseconds(200);
  const Outcome outcome = run(setting);
  ASSERT_FALSE(outcome.row.is_ok());
  EXPECT_EQ(outcome.row.status().code(), Code::timeout);
  const auto stuck = [](int rank) {
    return fmt::format(
        "\n  rank {} has completed no operation, is in operation 1 (all_reduce one_shot of 300 float, sum), "
        "step 3 of 4: waits for phase 1 of rank 1",
        rank);
  };
  EXPECT_THAT(outcome.row.status().message(),
              testing::AllOf(testing::StartsWith("rank 0 does not end all_reduce/tutti.one_shot/"),
                             HasSubstr("\n  rank 1 has completed operation 1 (all_reduce one_shot of 300 float, sum)"),
                             HasSubstr(stuck(0)), HasSubstr(stuck(2))));
}

INSTANTIATE_TEST_SUITE_P(Waits, Omitted,
                         testing::Values(Omission{"one_shot", Collective::all_reduce, "one_shot", 2, Verb::wait, 0},
                                         Omission{"broadcast_to_1", Collective::broadcast, "direct", 1, Verb::wait, 0},
                                         Omission{"broadcast_to_2", Collective::broadcast, "direct", 2, Verb::wait, 0},
                                         // The root's call returns while others read its buffer.
                                         Omission{"broadcast_root", Collective::broadcast, "direct", 0, Verb::wait, 0,
                                                  Buffers::shared}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tutti::harness
