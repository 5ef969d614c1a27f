// SPDX-License-Identifier: Apache-2.0
#include "harness/report/flight.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
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

class FlightFolder : public testing::Test {
 protected:
  FlightFolder() {
    std::string name = testing::TempDir() + "tutti-flight-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    for (const char* const older : {"tutti_rank_1", "tutti_rank_17", "tutti_rank_x", "stacks.txt"}) put(older);
  }
  ~FlightFolder() override { std::filesystem::remove_all(folder_); }
  FlightFolder(const FlightFolder&) = delete;
  FlightFolder& operator=(const FlightFolder&) = delete;

  void put(const std::string& name) const { std::ofstream(folder_ / name) << "of an older job"; }
  [[nodiscard]] std::string content_of(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  std::filesystem::path folder_;
};

TEST_F(FlightFolder, HasNoFileOfARankOfWhichNothingIsKnown) {
  const std::vector<StartedCall> barrier{call_of(1, Collective::barrier, 0, true)};
  const Status written = write_flight(folder_, 3, {{0, {}}, {2, barrier}});
  EXPECT_TRUE(written.is_ok()) << written.message();
  EXPECT_THAT(names(), testing::ElementsAre("stacks.txt", "tutti_rank_0", "tutti_rank_2", "tutti_rank_x"));
  EXPECT_EQ(content_of("tutti_rank_0"), flight_pickle(3, {}));
  EXPECT_EQ(content_of("tutti_rank_2"), flight_pickle(3, barrier));
}

TEST_F(FlightFolder, HasNoOlderFileIfNothingIsKnown) {
  EXPECT_TRUE(write_flight(folder_, 3, {}).is_ok());
  EXPECT_TRUE(write_stacks(folder_, 3, {}).is_ok());
  EXPECT_THAT(names(), testing::ElementsAre("tutti_rank_x"));
}

TEST_F(FlightFolder, HasAllThatCouldBeWritten) {
  std::filesystem::create_directory(folder_ / "tutti_rank_0");
  const Status written = write_flight(folder_, 3, {{2, {}}});
  EXPECT_EQ(written.code(), Code::invalid_argument);
  EXPECT_THAT(written.message(), HasSubstr("/tutti_rank_0', which is of another job"));
  EXPECT_THAT(names(), testing::ElementsAre("stacks.txt", "tutti_rank_0", "tutti_rank_2", "tutti_rank_x"));
}

}  // namespace
}  // namespace tutti::harness::report
