// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/sweep.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The message of what must be a user's mistake: short, and naming the value.
template <class T>
std::string mistake(const Result<T>& result, const std::string& value) {
  EXPECT_EQ(result.status().code(), Code::invalid_argument) << value;
  const std::string message = result.status().message();
  EXPECT_THAT(message, HasSubstr("'" + value + "'"));
  EXPECT_LT(std::ranges::count(message, '\n'), 5);
  return message;
}

TEST(ParseBytes, SuffixesAreBinary) {
  EXPECT_EQ(parse_bytes("0").value(), 0);
  EXPECT_EQ(parse_bytes("17").value(), 17);
  EXPECT_EQ(parse_bytes("1K").value(), 1024);
  EXPECT_EQ(parse_bytes("1k").value(), 1024);
  EXPECT_EQ(parse_bytes("64M").value(), 67108864);
  EXPECT_EQ(parse_bytes("3G").value(), 3221225472);
  EXPECT_EQ(parse_bytes("1T").value(), 1099511627776);
  EXPECT_EQ(parse_bytes("8388607T").value(), 9223370937343148032);
}

TEST(ParseBytes, AUnitMayBeWrittenInFullAndHaveAFraction) {
  for (const char* text : {"8K", "8KB", "8KiB", "8kb", "8kib", "8192B"})
    EXPECT_EQ(parse_bytes(text).value(), 8192) << text;
  EXPECT_EQ(parse_bytes("1.5K").value(), 1536);
  EXPECT_EQ(parse_bytes("0.5MiB").value(), 524288);
  EXPECT_EQ(parse_bytes("2.0").value(), 2);
}

TEST(ParseBytes, RefusesWhatIsNotANumberOfBytes) {
  for (const char* text : {"0x", "8Q", "8Kx", "8iB", "8Ki", "8BB", "1.", "1.K", ".5K", "1.2.3K", "0.00000001T"}) {
    EXPECT_THAT(mistake(parse_bytes(text), text),
                AllOf(HasSubstr("allowed: 4096, 64K"), Not(HasSubstr("did you mean"))));
  }
  EXPECT_THAT(mistake(parse_bytes("1.3K"), "1.3K"), HasSubstr("not a whole number of bytes: did you mean '1331'?"));
  for (const char* text : {"1.5", "0.5", "1.5B", "0.0001K"}) {
    EXPECT_THAT(mistake(parse_bytes(text), text),
                AllOf(HasSubstr("not a whole number of bytes"), Not(HasSubstr("did you mean"))))
        << "a unit may be missing, and nothing is not a little";
  }
  for (const char* text : {"", "K", "-8", "+8", " 8", "8 "}) mistake(parse_bytes(text), text);
}

TEST(ParseBytes, RefusesWhatDoesNotFit) {
  EXPECT_THAT(mistake(parse_bytes("8388608T"), "8388608T"), HasSubstr("too large: at most 8388607T"));
  EXPECT_THAT(mistake(parse_bytes("9223372036854775808"), "9223372036854775808"), HasSubstr("too large"));
}

TEST(FormatBytes, IsWhatParseBytesReads) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1023), "1023");
  EXPECT_EQ(format_bytes(1536), "1536");
  EXPECT_EQ(format_bytes(67108864), "64M");
  EXPECT_EQ(format_bytes(1125899906842624), "1024T");
}

TEST(ParseSizes, AFactorMultipliesUpToStop) {
  EXPECT_THAT(parse_sizes("8:64M:x4").value(),
              ElementsAre(8, 32, 128, 512, 2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432));
  EXPECT_THAT(parse_sizes("8:16M:x8").value(), ElementsAre(8, 64, 512, 4096, 32768, 262144, 2097152, 16777216));
  EXPECT_THAT(parse_sizes("3:3:x2").value(), ElementsAre(3));
}

TEST(ParseSizes, AStepAddsUpToStop) {
  EXPECT_THAT(parse_sizes("0:1K:+256").value(), ElementsAre(0, 256, 512, 768, 1024));
  EXPECT_THAT(parse_sizes("1:10:+4").value(), ElementsAre(1, 5, 9));
  EXPECT_THAT(parse_sizes("1K:4K:+1K").value(), ElementsAre(1024, 2048, 3072, 4096));
}

TEST(ParseSizes, AListMayHoldRangesAndKeepsItsOrderOnce) {
  EXPECT_THAT(parse_sizes("8,1K,4M").value(), ElementsAre(8, 1024, 4194304));
  EXPECT_THAT(parse_sizes("1K,8,1024,8:32:x2").value(), ElementsAre(1024, 8, 16, 32));
}

TEST(ParseSizes, ARangeMayEndAtTheLargestNumber) {
  EXPECT_THAT(parse_sizes("4611686018427387904:9223372036854775807:x2").value(), ElementsAre(4611686018427387904));
  EXPECT_THAT(parse_sizes("9223372036854775806:9223372036854775807:+1").value(),
              ElementsAre(9223372036854775806, 9223372036854775807));
}

TEST(ParseSizes, NamesWhatIsWrongWithARange) {
  EXPECT_THAT(mistake(parse_sizes("1M:8"), "1M:8"), HasSubstr("stop 8 is before start 1M: did you mean '8:1M:x2'?"));
  EXPECT_THAT(mistake(parse_sizes("1M:8:x4"), "1M:8:x4"), HasSubstr("did you mean '8:1M:x4'?"));
  EXPECT_THAT(mistake(parse_sizes("0x:zz"), "0x"), HasSubstr("not a number of bytes"));
  EXPECT_THAT(mistake(parse_sizes("8:1M"), "8:1M"), HasSubstr("needs a factor or a step: did you mean '8:1M:x2'?"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:x1"), "8:1M:x1"),
              HasSubstr("the factor 'x1' must be a whole number, x2 or more"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:x1.5"), "x1.5"), HasSubstr("did you mean '8:1M:x2'?"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:x-2"), "x-2"), HasSubstr("factor"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:4"), "4"), HasSubstr("must be xfactor or +step: did you mean '8:1M:x2'?"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:"), "8:1M:"), HasSubstr("must be xfactor or +step"));
  EXPECT_THAT(mistake(parse_sizes("8:1M:+0"), "+0"), HasSubstr("the step '+0' must be above 0"));
  EXPECT_THAT(mistake(parse_sizes("0:1M:x2"), "0:1M:x2"), HasSubstr("did you mean '1:1M:x2'?"));
  EXPECT_THAT(mistake(parse_sizes("1:2:x2:3"), "1:2:x2:3"), HasSubstr("too many ':'"));
}

TEST(ParseSizes, RefusesEmptyItemsAndEndlessLists) {
  EXPECT_THAT(mistake(parse_sizes("8,,16"), "8,,16"), HasSubstr("has an empty item: did you mean '8,16'?"));
  EXPECT_THAT(mistake(parse_sizes(""), ""), HasSubstr("no sizes"));
  EXPECT_THAT(mistake(parse_sizes("0:1T:+1"), "0:1T:+1"), HasSubstr("more than 4096"));
  EXPECT_EQ(parse_sizes("1:4096:+1").value().size(), 4096U);
}

TEST(ParseRanks, NumbersAndRanges) {
  EXPECT_THAT(parse_ranks("1,2,3").value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_ranks("5:8").value(), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(parse_ranks("4,1:3,2").value(), ElementsAre(4, 1, 2, 3));
  EXPECT_EQ(parse_ranks("1:128").value().size(), 128U);
  EXPECT_THAT(parse_ranks("4096").value(), ElementsAre(4096));
}

TEST(ParseRanks, NamesWhatIsWrong) {
  EXPECT_THAT(mistake(parse_ranks("0"), "0"), HasSubstr("out of range: allowed are 1 to 4096: did you mean '1'?"));
  EXPECT_THAT(mistake(parse_ranks("-3"), "-3"), HasSubstr("allowed are 1 to 4096: did you mean '1'?"));
  EXPECT_THAT(mistake(parse_ranks("4097"), "4097"), HasSubstr("did you mean '4096'?"));
  EXPECT_THAT(mistake(parse_ranks("99999999999999999999"), "99999999999999999999"), HasSubstr("did you mean '4096'?"));
  EXPECT_THAT(mistake(parse_ranks("8:2"), "8:2"), HasSubstr("did you mean '2:8'?"));
  EXPECT_THAT(mistake(parse_ranks("1:2:3"), "1:2:3"), HasSubstr("too many ':'"));
  EXPECT_THAT(mistake(parse_ranks("two"), "two"), HasSubstr("not a whole number"));
  EXPECT_THAT(mistake(parse_ranks("2x"), "2x"), HasSubstr("not a whole number"));
  mistake(parse_ranks("all"), "all");
}

TEST(ParseRoots, NumbersAndAll) {
  EXPECT_THAT(parse_roots("0,3").value().values, ElementsAre(0, 3));
  EXPECT_FALSE(parse_roots("0,3").value().is_all);
  EXPECT_TRUE(parse_roots("all").value().is_all);
  EXPECT_THAT(mistake(parse_roots("-1"), "-1"), HasSubstr("allowed are 0 to 4095: did you mean '0'?"));
}

TEST(ParseWindows, AreNumbersUpToTheMost) {
  EXPECT_THAT(parse_windows("64,1:3").value(), ElementsAre(64, 1, 2, 3));
  EXPECT_THAT(mistake(parse_windows("0"), "0"), HasSubstr("allowed are 1 to 1024: did you mean '1'?"));
  EXPECT_THAT(mistake(parse_windows("1025"), "1025"), HasSubstr("did you mean '1024'?"));
}

TEST(ParsePairs, AreNeighboursAllOrTwoRanksTheLowerFirst) {
  EXPECT_THAT(parse_pairs("neighbours,0-3,0-3").value().values,
              ElementsAre(Pairing{}, Pairing{.first = 0, .second = 3}));
  EXPECT_FALSE(parse_pairs("0-3").value().is_all);
  EXPECT_TRUE(parse_pairs("0-3,all").value().is_all);
  EXPECT_THAT(mistake(parse_pairs("3-0"), "3-0"), HasSubstr("did you mean '0-3'?"));
  EXPECT_THAT(mistake(parse_pairs("2-2"), "2-2"), HasSubstr("no pair with itself"));
  EXPECT_THAT(mistake(parse_pairs("0:3"), "0:3"),
              HasSubstr("'0:3'\nallowed: neighbours, all, and two ranks such as '0-1'"));
  EXPECT_THAT(mistake(parse_pairs("neighbors"), "neighbors"), HasSubstr("did you mean 'neighbours'?"));
  EXPECT_THAT(mistake(parse_pairs("0-4096"), "4096"), HasSubstr("allowed are 0 to 4095"));
}

TEST(ParseNames, ListsOfTheTablesOfImpl) {
  EXPECT_THAT(parse_collectives("broadcast,all_reduce,broadcast").value(),
              ElementsAre(Collective::broadcast, Collective::all_reduce));
  EXPECT_THAT(parse_dtypes("bfloat16,float").value().values, ElementsAre(Dtype::bf16, Dtype::f32));
  EXPECT_THAT(parse_dtypes("bf16,fp32,float").value().values, ElementsAre(Dtype::bf16, Dtype::f32));
  EXPECT_THAT(parse_collectives("AllReduce,allgatherv,bcast,alltoall,reducescatter").value(),
              ElementsAre(Collective::all_reduce, Collective::all_gather_v, Collective::broadcast,
                          Collective::all_to_all, Collective::reduce_scatter));
  EXPECT_THAT(parse_algorithms("One-Shot").value(), ElementsAre("one_shot"));
  EXPECT_THAT(parse_ops("max").value().values, ElementsAre(Op::max));
  EXPECT_THAT(parse_placements("in,out").value(), ElementsAre(Placement::in, Placement::out));
  EXPECT_THAT(parse_buffer_kinds("shared").value(), ElementsAre(Buffers::shared));
}

TEST(ParseNames, AllIsEveryValueAndIsRemembered) {
  EXPECT_EQ(parse_collectives("all").value().size(), all_collectives().size());
  EXPECT_EQ(parse_collectives("pingpong,all,barrier").value().size(), all_collectives().size() + 1);
  EXPECT_EQ(parse_collectives("all,pingpong").value().back(), Collective::pingpong);
  EXPECT_THAT(parse_collectives("pingpong,sendrecv").value(), ElementsAre(Collective::pingpong, Collective::sendrecv));
  EXPECT_EQ(parse_dtypes("all").value().values, all_dtypes());
  EXPECT_TRUE(parse_dtypes("all").value().is_all);
  EXPECT_FALSE(parse_dtypes("float").value().is_all);
  EXPECT_EQ(parse_ops("sum,all").value().values, all_ops());
  EXPECT_THAT(parse_placements("all").value(), ElementsAre(Placement::out, Placement::in));
  EXPECT_THAT(parse_buffer_kinds("all").value(), ElementsAre(Buffers::private_, Buffers::shared));
}

TEST(ParseNames, NameTheNearestRightOne) {
  EXPECT_THAT(mistake(parse_dtypes("flaot"), "flaot"), HasSubstr("did you mean 'float'?"));
  EXPECT_THAT(mistake(parse_ops("summ"), "summ"), HasSubstr("did you mean 'sum'?"));
  EXPECT_THAT(mistake(parse_ops("none"), "none"), HasSubstr("one of: sum prod min max avg"));
  EXPECT_THAT(mistake(parse_collectives("allreduce_x"), "allreduce_x"), HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_THAT(mistake(parse_algorithms("rnig"), "rnig"), HasSubstr("did you mean 'ring'?"));
  const std::array barrier{Collective::barrier};
  EXPECT_THAT(mistake(parse_algorithms("rnig", barrier), "rnig"),
              HasSubstr("(one of: auto all dissemination nested two_level)"));
  EXPECT_THAT(mistake(parse_backends("opnmpi", {"tutti", "openmpi"}), "opnmpi"), HasSubstr("did you mean 'openmpi'?"));
  EXPECT_THAT(mistake(parse_backends("ompi", {"tutti", "openmpi"}), "ompi"), HasSubstr("did you mean 'openmpi'?"));
  EXPECT_THAT(mistake(parse_backends("ompi", {"tutti"}), "ompi"), Not(HasSubstr("did you mean")));
}

TEST(ParseAlgorithms, TakesAutoAllAndNamesOfAnyCollective) {
  EXPECT_THAT(parse_algorithms("auto").value(), ElementsAre("auto"));
  EXPECT_THAT(parse_algorithms("ring,dissemination").value(), ElementsAre("ring", "dissemination"));
  EXPECT_THAT(parse_algorithms("ring,all").value(), ElementsAre("all"));
}

TEST(ParseAlgorithms, TakesATuningBehindAName) {
  EXPECT_THAT(parse_algorithms("ring,Two-Shot+streamed+65536").value(), ElementsAre("ring", "two_shot+64K+streamed"));
  EXPECT_THAT(mistake(parse_algorithms("ring+streamd"), "streamd"), HasSubstr("did you mean 'streamed'?"));
  EXPECT_THAT(mistake(parse_algorithms("rnig+64K"), "rnig"), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(mistake(parse_algorithms("all+64K"), "all+64K"), HasSubstr("did you mean 'all'?"));
}

TEST(ParseBackends, AllIsAllThatAreKnown) {
  EXPECT_THAT(parse_backends("all", {"tutti", "openmpi"}).value(), ElementsAre("tutti", "openmpi"));
  EXPECT_THAT(parse_backends("openmpi", {"tutti", "openmpi"}).value(), ElementsAre("openmpi"));
}

TEST(ParseBackends, OneThatIsNamedTwiceHasATwin) {
  const std::vector<std::string> known{"tutti", "openmpi"};
  EXPECT_THAT(parse_backends("tutti,tutti", known).value(), ElementsAre("tutti", "tutti:2"));
  EXPECT_THAT(parse_backends("openmpi,tutti,openmpi", known).value(), ElementsAre("openmpi", "tutti", "openmpi:2"));
  EXPECT_THAT(parse_backends("tutti:2", known).value(), ElementsAre("tutti:2"));
  EXPECT_EQ(backend_of("tutti:2"), "tutti");
  EXPECT_EQ(backend_of("tutti"), "tutti");
  EXPECT_EQ(backend_of("openmpi:reduce+broadcast"), "openmpi");
  EXPECT_THAT(mistake(parse_backends("tutti,tutti,tutti", known), "tutti,tutti,tutti"),
              HasSubstr("'tutti' is there 3 times: once, or twice to hold it against itself"));
  EXPECT_THAT(mistake(parse_backends("tutto:2", known), "tutto"), HasSubstr("did you mean 'tutti'?"));
}

TEST(ParseBind, NamesTheNearestRightOne) {
  for (const Bind bind : {Bind::core, Bind::numa, Bind::none}) EXPECT_EQ(parse_bind(to_string(bind)).value(), bind);
  EXPECT_THAT(mistake(parse_bind("nuna"), "nuna"), HasSubstr("did you mean 'numa'?"));
  for (const auto how : {Synchronisation::roundtime, Synchronisation::dissemination, Synchronisation::library}) {
    EXPECT_EQ(parse_synchronisation(to_string(how)).value(), how);
  }
  for (const auto state : {CacheState::hot, CacheState::cold, CacheState::rotate}) {
    EXPECT_EQ(parse_cache_state(to_string(state)).value(), state);
  }
}

TEST(ParseLaunches, IsAWholeNumberFromOne) {
  EXPECT_EQ(parse_launches("1").value(), 1);
  EXPECT_EQ(parse_launches("30").value(), 30);
  EXPECT_THAT(mistake(parse_launches("0"), "0"), HasSubstr("allowed are 1 to 1000"));
  EXPECT_THAT(mistake(parse_launches("1001"), "1001"), HasSubstr("did you mean '1000'?"));
  for (const char* text : {"", "x", "-1", "1.5", "1:4"}) mistake(parse_launches(text), text);
}

TEST(ParseDuration, NeedsANumberAndAUnit) {
  EXPECT_EQ(parse_duration("60s").value(), std::chrono::seconds(60));
  EXPECT_EQ(parse_duration("4m").value(), std::chrono::minutes(4));
  EXPECT_EQ(parse_duration("20us").value(), std::chrono::microseconds(20));
  EXPECT_EQ(parse_duration("500ms").value(), std::chrono::milliseconds(500));
  EXPECT_EQ(parse_duration("2h").value(), std::chrono::hours(2));
  EXPECT_THAT(mistake(parse_duration("60"), "60"), HasSubstr("such as '60s'"));
  for (const char* text : {"2moons", "1d", "100ns", "1m30s", "20", "5MPI_s", "5_s", "5m-s"}) {
    EXPECT_THAT(mistake(parse_duration(text), text), HasSubstr("us, ms, s, m or h, such as '60s'"));
  }
  EXPECT_THAT(mistake(parse_duration("9999999999h"), "9999999999h"), HasSubstr("too long"));
  for (const char* text : {"", "s", "0s", "-1s", "0.0s", "0.0001us", "1.s"}) mistake(parse_duration(text), text);
}

TEST(ParseDuration, AUnitMayBeWrittenInFullAndHaveAFraction) {
  for (const char* text :
       {"1m", "1min", "1minute", "1Minutes", "60sec", "60000msec", "60000millis", "60000000micros"}) {
    ASSERT_TRUE(parse_duration(text).is_ok()) << text;
    EXPECT_EQ(parse_duration(text).value(), std::chrono::minutes(1)) << text;
  }
  EXPECT_EQ(parse_duration("1.5s").value(), std::chrono::milliseconds(1500));
  EXPECT_EQ(parse_duration("0.25hours").value(), std::chrono::minutes(15));
  EXPECT_EQ(parse_duration("1hr").value(), std::chrono::hours(1));
  EXPECT_EQ(parse_duration("9223372036s").value(), std::chrono::seconds(9223372036));
  EXPECT_THAT(mistake(parse_duration("9223372036.9s"), "9223372036.9s"), HasSubstr("too long"));
}

}  // namespace
}  // namespace tutti::harness::cases
