// SPDX-License-Identifier: Apache-2.0
#include "harness/board/rank_calls.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::board {
namespace {

using testing::StartsWith;

StartedCall call_of(std::uint64_t number, Collective collective, Count count, Dtype dtype, bool is_complete) {
  StartedCall one{.number = number, .is_complete = is_complete};
  one.call.collective = collective;
  one.call.count = count;
  one.call.dtype = dtype;
  return one;
}

TEST(RankCalls, ComeBackFromTheirLines) {
  const std::vector<StartedCall> calls{call_of(7, Collective::all_reduce, 1024, Dtype::bf16, true),
                                       call_of(9, Collective::all_to_all_v, -5, Dtype::i8, true),
                                       call_of(10, Collective::barrier, 0, Dtype::f32, false)};
  const std::string lines =
      "7 completed all_reduce 1024 bfloat16\n9 completed all_to_all_v 0 int8\n10 started barrier 0 float\n";
  EXPECT_EQ(call_lines(calls), lines);
  const auto back = calls_from_lines(lines);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(call_lines(back.value()), lines);
  EXPECT_TRUE(calls_from_lines("").value().empty());
}

TEST(RankCalls, ThatCannotBeReadNameTheCallAndItsField) {
  using Words = std::pair<std::string, std::string>;
  for (const auto& [line, complaint] :
       {Words("8 started all_reduce 4",
              "'8 started all_reduce 4' is not a call's number, state, collective, count and"),
        Words("", "'' is not a call's number"),
        Words("8 started all_reduce 4 float ", "'8 started all_reduce 4 float '"),
        Words("7 started all_reduce 4 float", "'7' is not a call's number behind that of the call before"),
        Words("x started all_reduce 4 float", "'x' is not a call's number"),
        Words("99999999999999999999 started all_reduce 4 float", "'99999999999999999999' is not a call's number"),
        Words("8 begun all_reduce 4 float", "'begun' is not a call's state, 'completed' or 'started'"),
        Words("8 started dance 4 float", "unknown collective 'dance'"),
        Words("8 started all_reduce -1 float", "'-1' is not a call's count"),
        Words("8 started all_reduce 281474976710657 float", "'281474976710657' is not a call's count"),
        Words("8 started all_reduce 4 flo\x1b", "unknown dtype 'flo\\x1b'")}) {
    const auto read = calls_from_lines("7 completed barrier 0 float\n" + line + "\n");
    EXPECT_EQ(read.status().code(), Code::invalid_argument) << line;
    EXPECT_THAT(read.status().message(), StartsWith("call 2: " + complaint));
  }
}

TEST(RankCalls, AreNoMoreThanTheirBounds) {
  std::string lines;
  for (int number = 1; number <= 65; ++number) lines += fmt::format("{} started barrier 0 float\n", number);
  EXPECT_EQ(calls_from_lines(lines).status().message(), "more than 64 calls");
  EXPECT_EQ(calls_from_lines(std::string(8193, 'x')).status().message(),
            "8193 bytes of calls, and at most 8192 are taken");
}

}  // namespace
}  // namespace tutti::harness::board
