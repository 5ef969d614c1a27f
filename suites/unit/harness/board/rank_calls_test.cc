// SPDX-License-Identifier: Apache-2.0
#include "harness/board/rank_calls.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/journal.h"
#include "impl/transports/local/domain.h"

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
  EXPECT_EQ(calls_from_lines("7 started barrier 0 float\n" + std::string(129, 'x')).status().message(),
            "call 2: 129 bytes, and at most 128 are taken");
}

/// What the journal of the only rank shows after this.
std::vector<StartedCall> calls_in(const std::function<void(Journal&)>& scribble) {
  const auto domain = local::open_domain(local::shape_for(1)).value();
  Journal& journal = *domain->seat(0).journal;
  scribble(journal);
  EXPECT_EQ(progress_of(*domain).size(), 1U);
  return last_calls(*domain, kMostCalls).front();
}

TEST(RankCalls, OfAJournalThatCannotBeAreLeftOut) {
  const auto noted = [](const std::function<void(CallNote&)>& change) {
    return calls_in([&](Journal& journal) {
      CallNote note{.first = 1};
      change(note);
      journal.calls[0].write(note);
      journal.notes = 1;
    });
  };
  EXPECT_EQ(noted([](CallNote& /*note*/) {}).size(), 1U);
  EXPECT_TRUE(noted([](CallNote& note) { note.collective = static_cast<Collective>(200); }).empty());
  EXPECT_TRUE(noted([](CallNote& note) { note.dtype = static_cast<Dtype>(200); }).empty());
  EXPECT_TRUE(noted([](CallNote& note) { note.count = -1; }).empty());
  EXPECT_TRUE(noted([](CallNote& note) { note.count = kMostCallCount + 1; }).empty());
  EXPECT_TRUE(noted([](CallNote& note) { note.algorithm.fill('x'); }).empty());
}

TEST(RankCalls, OfAJournalThatIsAtItsLastNumberEnd) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  const auto calls = calls_in([](Journal& journal) {
    journal.calls[0].write({.first = 1});
    journal.notes = 1;
    journal.finished = kLast;
  });
  ASSERT_EQ(calls.size(), kMostCalls);
  EXPECT_EQ(calls.back().number, kLast);
  EXPECT_THAT(calls_from_lines(call_lines(calls)).status().message(),
              StartsWith("call 1: '18446744073709551552' is not"));
}

TEST(RankCalls, OfARankThatStandsWhereNoneCanAreToldAllTheSame) {
  const auto calls = calls_in([](Journal& journal) {
    journal.calls[0].write({.first = 1});
    journal.notes = 1;
    journal.standing.write({.operation = 1, .peer = 17, .wait = Wait::receive, .dtype = static_cast<Dtype>(200)});
  });
  EXPECT_EQ(calls.size(), 1U);
}

}  // namespace
}  // namespace tutti::harness::board
