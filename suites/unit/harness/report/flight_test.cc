// SPDX-License-Identifier: Apache-2.0
#include "harness/report/flight.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::report {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

StartedCall call_of(std::uint64_t number, Collective collective, Count count, bool is_complete) {
  StartedCall one{.number = number, .is_complete = is_complete};
  one.call.collective = collective;
  one.call.count = count;
  return one;
}

// Text is X, its length in four bytes and itself; a number is K and a byte, J and four, or \x8a, 8 and eight.
TEST(Flight, APickleWithoutCallsIsTheseBytes) {
  EXPECT_EQ(flight_pickle(2, {}),
            "\x80\x02}("
            "X\x07\0\0\0version"
            "X\x04\0\0\0"
            "2.10"
            "X\x09\0\0\0pg_config"
            "}("
            "X\x01\0\0\0"
            "0"
            "}("
            "X\x04\0\0\0name"
            "X\x01\0\0\0"
            "0"
            "X\x04\0\0\0"
            "desc"
            "X\x0a\0\0\0"
            "default_pg"
            "X\x05\0\0\0ranks"
            "X\x06\0\0\0[0, 1]"
            "uu"
            "X\x07\0\0\0"
            "entries"
            "](e"
            "u."s);
}

TEST(Flight, ACallIsAnEntryWithSizesAndState) {
  const std::string text = flight_pickle(2, std::vector{call_of(300, Collective::all_gather, 8, false)});
  EXPECT_THAT(text, HasSubstr("X\x11\0\0\0"
                              "collective_seq_id"
                              "J\x2c\x01\0\0"s));
  EXPECT_THAT(text, HasSubstr("X\x0e\0\0\0profiling_name"
                              "X\x15\0\0\0nccl:_all_gather_base"s));
  EXPECT_THAT(text, HasSubstr("X\x0b\0\0\0input_sizes"
                              "](]("
                              "K\x08"
                              "ee"s));
  EXPECT_THAT(text, HasSubstr("X\x0c\0\0\0output_sizes"
                              "](]("
                              "K\x10"
                              "ee"s));
  EXPECT_THAT(text, HasSubstr("X\x05\0\0\0state"
                              "X\x07\0\0\0started"s));
  EXPECT_THAT(flight_pickle(2, std::vector{call_of(1, Collective::barrier, 0, true)}), HasSubstr("X\x05\0\0\0state"
                                                                                                 "X\x09\0\0\0"
                                                                                                 "completed"s));
}

TEST(Flight, OfARankThatStandsStillTheLastCallIsStarted) {
  const std::string text = flight_pickle(
      2, std::vector{call_of(1, Collective::all_reduce, 4, true), call_of(2, Collective::all_reduce, 4, false)});
  EXPECT_LT(text.find("completed"), text.find("started"));
  EXPECT_THAT(text, HasSubstr("X\x06\0\0\0is_p2p\x89"s));
}

TEST(Flight, LongNumbersHaveEightBytes) {
  EXPECT_THAT(flight_pickle(1, std::vector{call_of(1, Collective::broadcast, Count{1} << 33U, true)}),
              HasSubstr("](]("
                        "\x8a\x08\0\0\0\0\x02\0\0\0"
                        "ee"s));
}

TEST(Flight, WhatHasNoNameThereIsLeftOut) {
  const std::string text = flight_pickle(
      2, std::vector{call_of(1, Collective::scan, 8, true), call_of(2, Collective::all_to_all_v, 8, true)});
  EXPECT_EQ(text, flight_pickle(2, {}));
}

TEST(Flight, OfARankOfWhichNothingIsKnownThereIsNoFile) {
  std::string folder = testing::TempDir() + "tutti-flight-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto path = [&](int rank) { return std::filesystem::path(folder) / fmt::format("tutti_rank_{}", rank); };
  std::ofstream(path(1)) << "of an older job";
  const Status written = write_flight(folder, 3, {{0, {}}, {2, {call_of(1, Collective::barrier, 0, true)}}});
  EXPECT_TRUE(written.is_ok()) << written.message();
  EXPECT_FALSE(std::filesystem::exists(path(1)));
  const std::array<std::string, 2> expected{flight_pickle(3, {}),
                                            flight_pickle(3, std::vector{call_of(1, Collective::barrier, 0, true)})};
  for (const int rank : {0, 2}) {
    std::ifstream file(path(rank), std::ios::binary);
    const std::string content(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(content, expected[rank == 0 ? 0 : 1]);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti::harness::report
