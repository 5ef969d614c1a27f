// SPDX-License-Identifier: Apache-2.0
// Where a narrow float cannot sum all ranks exactly, an all_reduce that forgets one rank is caught all the same. A
// check catches it in one of the passes, and so does a run where it is timed. And how many operations a check has where
// that is not the reason.
#include <numeric>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/tutti/backend.h"
#include "harness/measure/cell.h"
#include "harness/measure/check.h"
#include "harness/measure/rows.h"
#include "harness/measure/stream.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/impl/prove/programs.h"

namespace tutti::harness::measure::passes {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 40;
constexpr int kPasses = 3;

Case case_of(Dtype dtype, Op op, std::string algorithm) {
  Case one;
  one.collective = Collective::all_reduce;
  one.transport = "local";
  one.dtype = dtype;
  one.op = op;
  one.ranks = kRanks;
  one.ranks_as = RanksAs::tasks;
  one.count = 1;  // nothing but the passes shows every rank
  one.bytes = static_cast<std::int64_t>(size_of(dtype));
  one.algorithm = std::move(algorithm);
  return one;
}

Schedule forgetting(int rank) {
  Programs programs = programs_of(Collective::all_reduce, "one_shot", kRanks);
  Operands<4> sources;
  if (rank > 0) sources.push_back(on({.first = 0, .n = rank}, scratch(0, unit(0))));
  if (rank + 1 < kRanks) sources.push_back(on({.first = rank + 1, .n = kRanks - rank - 1}, scratch(0, unit(0))));
  for (Program& program : programs.ranks) program.back().sources = sources;
  Schedule schedule = programs.schedule();
  schedule.name = "forgetful";
  return schedule;
}

/// All ranks on one host, with a backend that knows `forgetful`.
class Place {
 public:
  explicit Place(int forgotten = 0) {
    std::vector<int> ranks(kRanks);
    std::iota(ranks.begin(), ranks.end(), 0);
    runner_.emplace(memory_.board(), RunnerOptions{.runner = 0, .runners = 1, .job_ranks = kRanks, .ranks = ranks});
    domain_ = local::open_domain(local::shape_for(kRanks)).value();
    backend_ = OwnBackend::create(*domain_, ranks, {.waiting = Waiting::yield, .prove_plans = false}).value();
    backend_->set_substitute([forgotten](const Case& one, const Problem& /*problem*/) {
      return one.algorithm == "forgetful" ? std::optional(forgetting(forgotten)) : std::nullopt;
    });
  }
  [[nodiscard]] Runner& runner() { return *runner_; }
  [[nodiscard]] Variant variant(const Case& one) {
    auto made = Variant::create(
        *runner_, {.backend = *backend_,
                   .memory = [this](const Case& which, std::size_t index) { return backend_->allocator(which, index); },
                   .instance = one});
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }

 private:
  BoardMemory memory_{kRanks};
  std::optional<Runner> runner_;
  std::unique_ptr<Domain> domain_;
  std::unique_ptr<OwnBackend> backend_;
};

TEST(Passes, OneOperationOfFewElementsDoesNotShowEveryRank) {
  Place place(23);
  Variant variant = place.variant(case_of(Dtype::f8e5m2, Op::sum, "forgetful"));
  int wrong = 0;
  for (std::uint64_t salt = 1; salt <= kPasses; ++salt) {
    const auto damage = check_operation(place.runner(), variant, {.salt = salt});
    ASSERT_TRUE(damage.is_ok()) << damage.status().message();
    wrong += damage.value().wrong > 0 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 1) << "passes that a rank of 40 contributes to, of 15 each";
}

TEST(Passes, ACheckCatchesAForgottenRankOfForty) {
  for (int forgotten = 0; forgotten < kRanks; forgotten += 3) {
    Place place(forgotten);
    Variant variant = place.variant(case_of(Dtype::f8e5m2, Op::sum, "forgetful"));
    const auto row = check_case(place.runner(), variant);
    ASSERT_TRUE(row.is_ok()) << row.status().message();
    EXPECT_EQ(row.value().verdict, Verdict::wrong) << forgotten;
    EXPECT_EQ(row.value().checked_on, "every; 3 passes of 15 ranks");
  }
}

TEST(Passes, ARunCatchesAForgottenRankOfFortyHoweverLittleTimeThereIs) {
  Place place(23);
  std::vector<Variant> variants;
  variants.push_back(place.variant(case_of(Dtype::f8e5m2, Op::sum, "forgetful")));
  variants.push_back(place.variant(case_of(Dtype::f8e5m2, Op::sum, "one_shot")));
  const auto rows = measure_cell(place.runner(), variants, {.most_time = std::chrono::nanoseconds(0)});
  ASSERT_TRUE(rows.is_ok()) << rows.status().message();
  EXPECT_EQ(rows.value()[0].verdict, Verdict::wrong);
  EXPECT_EQ(rows.value()[1].verdict, Verdict::ok) << rows.value()[1].reason;
  for (const Row& row : rows.value()) EXPECT_THAT(row.checked_on, HasSubstr("timed; 3 passes of 15 ranks"));
}

TEST(Passes, ALoopOfADropInProgramIsCheckedUntilAForgottenRankOfFortyShows) {
  for (const bool is_in_place : {false, true}) {
    for (int forgotten = 0; forgotten < kRanks; forgotten += 3) {
      Place place(forgotten);
      Case one = case_of(Dtype::f8e5m2, Op::sum, "forgetful");
      one.is_in_place = is_in_place;
      one.cadence = Cadence::streaming;
      Variant variant = place.variant(one);
      const auto result = measure_stream(place.runner(), variant, {.operations = 2, .salt = 5});
      ASSERT_TRUE(result.is_ok()) << result.status().message();
      EXPECT_EQ(result.value().failed_checks, 1) << forgotten << (is_in_place ? " in place" : "");
      const auto unchecked = measure_stream(place.runner(), variant, {.operations = 2, .checks = 0});
      ASSERT_TRUE(unchecked.is_ok()) << unchecked.status().message();
      EXPECT_EQ(unchecked.value().wrong, 0);
    }
  }
}

TEST(Rounds, AreSeveralButOfLongBuffersInOneForm) {
  Place place;
  const auto rounds = [&](Count count, Dtype dtype, bool is_in_place, Buffers buffers) {
    Case one = case_of(dtype, Op::sum, "one_shot");
    one.count = count;
    one.bytes = count * static_cast<std::int64_t>(size_of(dtype));
    one.is_in_place = is_in_place;
    one.buffers = buffers;
    return rounds_of(place.variant(one)).number;
  };
  constexpr Count kShort = 65536, kLong = kShort + 1;  // of float: 256 KiB
  for (const bool is_in_place : {false, true}) {
    for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
      const bool is_first = !is_in_place && buffers == Buffers::private_;
      EXPECT_EQ(rounds(kShort, Dtype::f32, is_in_place, buffers), 2);
      EXPECT_EQ(rounds(kLong, Dtype::f32, is_in_place, buffers), is_first ? 2 : 1);
      EXPECT_EQ(rounds(4 * kLong, Dtype::f8e5m2, is_in_place, buffers), 3) << "passes";
    }
  }
}

TEST(Rounds, OfEachFormHaveDataOfTheirOwn) {
  Place place;
  std::set<std::uint64_t> salts;
  for (const bool is_in_place : {false, true}) {
    for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
      Case one = case_of(Dtype::f8e5m2, Op::sum, "one_shot");
      one.is_in_place = is_in_place;
      one.buffers = buffers;
      const Rounds rounds = rounds_of(place.variant(one));
      for (int i = 0; i < rounds.number; ++i) salts.insert(rounds.first_salt + static_cast<std::uint64_t>(i));
    }
  }
  EXPECT_EQ(salts.size(), 4U * kPasses);
}

TEST(Passes, AreOneWhereAllRanksCanBeAdded) {
  Place place;
  const auto text = [&](Dtype dtype, Op op) { return inputs_text(place.variant(case_of(dtype, op, "one_shot"))); };
  EXPECT_EQ(text(Dtype::f8e4m3, Op::sum), "; 2 passes of 31 ranks");
  EXPECT_EQ(text(Dtype::f8e5m2, Op::max), "");
  EXPECT_EQ(text(Dtype::bf16, Op::sum), "");
}

}  // namespace
}  // namespace tutti::harness::measure::passes
