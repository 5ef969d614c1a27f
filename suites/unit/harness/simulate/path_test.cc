// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "harness/simulate/predictor.h"
#include "harness/simulate/walk.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::simulate {
namespace {

/// A path begins at 0, has no gap, and its parts are all of its time.
void expect_whole(const Prediction& prediction, const std::string& what) {
  ASSERT_FALSE(prediction.path.empty()) << what;
  EXPECT_EQ(prediction.path.front().begin, 0) << what;
  EXPECT_EQ(prediction.path.back().end, prediction.ns) << what;
  for (std::size_t i = 0; i < prediction.path.size(); ++i) {
    const PathStep& step = prediction.path[i];
    EXPECT_NEAR(step.parts.sum(), step.end - step.begin, 1e-6 * prediction.ns) << what << " step " << i;
    EXPECT_GE(step.parts.processor, -1e-6) << what;
    if (i == 0) continue;
    EXPECT_EQ(step.begin, prediction.path[i - 1].end) << what;
    EXPECT_EQ(step.from >= 0 ? step.from : step.rank, prediction.path[i - 1].rank) << what;
  }
}

TEST(Path, OfEveryAlgorithmIsAllOfItsTime) {
  for (const Shape shape : {Shape::one_switch, Shape::fat_tree}) {
    for (const Algorithm* algorithm : all_algorithms()) {
      for (const int ranks : {4, 16}) {
        Machine machine = example_machine();
        machine.ranks_per_node = 4;
        machine.network = {.shape = shape, .leaf = 2, .taper = 3, .hop = 100};
        const auto predictor =
            Predictor::make(*algorithm, {.collective = algorithm->collective, .ranks = ranks}, machine);
        ASSERT_TRUE(predictor.is_ok());
        const auto details = predictor.value().details(100'000);
        if (!details.is_ok()) continue;  // uses memory of other nodes
        EXPECT_EQ(details.value().ns, predictor.value().at(100'000).value().ns);
        expect_whole(details.value(),
                     std::string(to_string(algorithm->collective)) + " " + std::string(algorithm->name));
      }
    }
  }
}

TEST(Path, OfFewRanksThatStandForAllGoesAroundThem) {
  Machine machine = example_machine();
  machine.ranks_per_node = 1;
  const Predictor ring = Predictor::make(*find_algorithm(Collective::all_reduce, "ring").value(),
                                         {.collective = Collective::all_reduce, .ranks = 6}, machine)
                             .value();
  ASSERT_EQ(ring.walked(), 1);
  const Prediction prediction = ring.details(6000).value();
  ASSERT_EQ(prediction.path.size(), 11U);
  for (std::size_t i = 1; i < 11; ++i) EXPECT_EQ(prediction.path[i].rank, (prediction.path[i - 1].rank + 1) % 6);
}

TEST(Path, LoadsAreWhatCrosses) {
  Machine machine;
  machine.model.far.wire = SizeTable::line(0, 1);
  const Predictor ring = Predictor::make(*find_algorithm(Collective::all_reduce, "ring").value(),
                                         {.collective = Collective::all_reduce, .ranks = 4}, machine)
                             .value();
  const Prediction prediction = ring.details(4000).value();
  ASSERT_EQ(prediction.loads.size(), 2U);
  EXPECT_EQ(prediction.loads[0].busy, 6000) << "1000 B in each of 6 rounds";
  EXPECT_EQ(prediction.loads[0].name, "interface of node1, out");
  EXPECT_EQ(prediction.loads[1].busy, 6000);
}

}  // namespace
}  // namespace tutti::harness::simulate
