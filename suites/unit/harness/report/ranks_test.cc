// SPDX-License-Identifier: Apache-2.0
#include "harness/report/ranks.h"

#include <vector>

#include <gtest/gtest.h>

namespace tutti::harness::report {
namespace {

const std::vector<RankResult> kTwo{{.rank = 1,
                                    .host = "node5",
                                    .samples = 1000,
                                    .came_last = 612,
                                    .waited_us = 41,
                                    .waited_share = 0.041,
                                    .median_us = 52.1,
                                    .p95_us = 318.444,
                                    .ended_samples = 500,
                                    .ended_last = 440,
                                    .own_ratio = 1.14,
                                    .is_late = true},
                                   {.rank = 0, .samples = 1000}};

TEST(Ranks, TheTableHasAllOfThem) {
  EXPECT_EQ(ranks_table(kTwo),
            "# ranks of P=2 over all cells, worst first: 1000 samples\n"
            "#  rank  host   came last  others waited  median (us)    p95 (us)  ended last  own time\n"
            "#     1  node5     61.2 %          4.1 %        52.10      318.44      88.0 %   +14.0 %  <- straggler\n"
            "#     0  -          0.0 %          0.0 %            -           -           -         -\n");
  EXPECT_EQ(ranks_table({}), "");
}

TEST(Ranks, ALineNamesEachStraggler) {
  EXPECT_EQ(
      straggler_lines(kTwo),
      "# straggler, P=2: rank 1 on node5 came last to 612 of 1000 samples (50 % if all ranks were alike), and the "
      "others waited for it 4.1 % of the time\n");
  std::vector<RankResult> slow = kTwo;
  slow[0].is_late = false;
  EXPECT_EQ(straggler_lines(slow), "");
  slow[0].is_slow = true;
  slow[0].host.clear();
  EXPECT_EQ(straggler_lines(slow),
            "# straggler, P=2: rank 1 ended last in 440 of 500 samples, and the others had ended before half of their "
            "time\n");
}

TEST(Ranks, AsJsonHaveWhatIsMeasured) {
  EXPECT_EQ(ranks_json(kTwo),
            R"([{"rank":1,"host":"node5","samples":1000,"came_last":612,"waited_us":41.0,"waited_share":0.041,)"
            R"("waited_median_us":52.1,"waited_p95_us":318.444,)"
            R"("ended_samples":500,"ended_last":440,"own_ratio":1.14,"comes_late":true,"ends_late":false},)"
            R"({"rank":0,"host":"","samples":1000,"came_last":0,"waited_us":0.0,"waited_share":0.0,)"
            R"("waited_median_us":null,"waited_p95_us":null,)"
            R"("ended_samples":0,"ended_last":0,"own_ratio":null,"comes_late":false,"ends_late":false}])");
}

}  // namespace
}  // namespace tutti::harness::report
