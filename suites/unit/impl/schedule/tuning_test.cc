// SPDX-License-Identifier: Apache-2.0
// How a tuning is written, and what binding makes of it.
#include "impl/schedule/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/schedule/bind.h"

namespace tutti {
namespace {

using testing::HasSubstr;

TEST(Tuning, IsReadAsItIsWritten) {
  EXPECT_EQ(to_text(Tuning()), "");
  EXPECT_EQ(to_text(Tuning{.segment_bytes = 65536, .stores = Stores::streamed}), "+64K+streamed");
  EXPECT_EQ(to_text(Tuning{.segment_bytes = 1000}), "+1000");
  for (const Tuning& one :
       {Tuning(), Tuning{.segment_bytes = 64}, Tuning{.segment_bytes = 3 << 20, .stores = Stores::plain},
        Tuning{.stores = Stores::streamed}, Tuning{.segment_bytes = 4096, .stores = Stores::single_copy}}) {
    EXPECT_EQ(tuning_from(to_text(one)).value(), one) << to_text(one);
  }
  EXPECT_EQ(tuning_from("+streamed+64K").value(), (Tuning{.segment_bytes = 65536, .stores = Stores::streamed}));
  EXPECT_EQ(without_tuning("two_shot+64K"), "two_shot");
  EXPECT_EQ(tuning_behind("two_shot+64K"), "+64K");
  EXPECT_EQ(tuning_behind("two_shot"), "");
}

TEST(Tuning, ThatDoesNotExistIsNamed) {
  EXPECT_THAT(std::string(tuning_from("+streamd").status().message()),
              HasSubstr("'streamd': did you mean 'streamed'?"));
  for (const char* text : {"+63", "+64X", "+2G", "+99999999999999999999", "+1e6", "+-1", "+", "+64K+"}) {
    EXPECT_FALSE(tuning_from(text).is_ok()) << text;
  }
  EXPECT_THAT(std::string(tuning_from("+63").status().message()), HasSubstr("did you mean '64K'?"));
}

Schedule tuned(const Tuning& tuning) {
  Schedule schedule = schedule_of(*find_algorithm(Collective::all_reduce, "two_shot").value(),
                                  {.collective = Collective::all_reduce, .ranks = 2});
  schedule.tuning = tuning;
  return schedule;
}

TEST(Tuning, CutsACallIntoSegmentsOfAtMostSoManyBytes) {
  const BindRequest request{.count = 10000, .op = Op::sum};
  EXPECT_EQ(bind(tuned({}), request).value().segments(), 1);
  const auto bound = bind(tuned({.segment_bytes = 16 * 1024}), request);
  EXPECT_EQ(bound.value().segment_bytes, 16 * 1024);
  EXPECT_EQ(bound.value().segments(), 3);  // 4096, 4096 and 1808 elements
  // Longer than what fits is no error.
  EXPECT_EQ(bind(tuned({.segment_bytes = 1 << 30}), request).value().segments(), 1);
}

TEST(Tuning, OfStoresDecidesWhetherTheyGoPastTheCaches) {
  const auto streams = [](const Tuning& tuning, std::int64_t cache_bytes) {
    const auto bound =
        bind(tuned(tuning),
             {.count = 4096, .op = Op::sum, .buffers = Buffers::shared, .resources = {.cache_bytes = cache_bytes}});
    bool any = false;
    for (const PlanOp& op : bound.value().full.ops()) any |= (op.marks & mark_streams) != 0;
    return any;
  };
  EXPECT_FALSE(streams({}, 1 << 30));
  EXPECT_TRUE(streams({}, 1024));
  EXPECT_TRUE(streams({.stores = Stores::streamed}, 1 << 30));
  EXPECT_FALSE(streams({.stores = Stores::plain}, 1024));
}

}  // namespace
}  // namespace tutti
