// SPDX-License-Identifier: Apache-2.0
#include "harness/record/samples.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::record {
namespace {

const std::vector<Sample> kThree{
    {.global_us = 1.5,
     .last_arrival_us = 1.25,
     .skew_us = 0.25,
     .arrived_last = 1,
     .rank_us = {1.5, 1.125},
     .rank_arrived_us = {0, 0.25},
     .late_us = 0.125},
    {.global_us = 2000, .last_arrival_us = 2000, .finished_last = 1, .rank_us = {3, 2000}, .is_valid = false},
    {.global_us = 1234567.891, .rank_us = {1, 2}, .block = 7, .is_of_state = false}};

TEST(Samples, OneLineEachWithWhatEveryRankTook) {
  EXPECT_EQ(samples_lines({.case_id = "a/b", .launch = 3, .starter = "mpirun"}, kThree),
            "a/b,3,0,1,1.5,1.25,0.25,1,0,1.5 1.125,0.125,0,,mpirun,0 0.25\n"
            "a/b,3,1,0,2000,2000,0,0,1,3 2000,,0,late,mpirun,\n"
            "a/b,3,2,0,1234567.89,0,0,0,0,1 2,,7,state,mpirun,\n");
  EXPECT_EQ(samples_lines({.case_id = "a,b"}, std::span(kThree).first(1)).substr(0, 6), "\"a,b\",");
}

TEST(Samples, TheFileHasTheHeaderAtOnceAndThenTheLines) {
  const std::string path = temporary_path(".samples.csv");
  {
    auto file = SamplesFile::open(path);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    ASSERT_TRUE(
        file.value().write(samples_lines({.case_id = "a/b", .launch = 3, .starter = "mpirun"}, kThree)).is_ok());
    std::ifstream stream(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
              samples_header() + "\n" + samples_lines({.case_id = "a/b", .launch = 3, .starter = "mpirun"}, kThree));
  }
  std::filesystem::remove(path);
}

TEST(Samples, AreReadAgainByCase) {
  const std::string text = samples_header() + "\n" +
                           samples_lines({.case_id = "a/b", .launch = 3, .starter = "mpirun"}, kThree) +
                           samples_lines({.case_id = "c"}, kThree);
  EXPECT_TRUE(are_samples(text));
  const auto cases = samples_from_csv(text);
  ASSERT_TRUE(cases.is_ok()) << cases.status().message();
  ASSERT_EQ(cases.value().size(), 2U);
  EXPECT_EQ(cases.value()[0].case_id, "a/b");
  EXPECT_EQ(cases.value()[0].launch, 3);
  EXPECT_EQ(cases.value()[0].starter, "mpirun");
  const std::vector<Sample>& samples = cases.value()[0].samples;
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].global_us, 1.5);
  EXPECT_EQ(samples[0].skew_us, 0.25);
  EXPECT_EQ(samples[0].arrived_last, 1);
  EXPECT_EQ(samples[0].rank_us, (std::vector<double>{1.5, 1.125}));
  EXPECT_EQ(samples[0].rank_arrived_us, (std::vector<double>{0, 0.25}));
  EXPECT_FALSE(samples[1].is_valid);
  EXPECT_TRUE(samples[1].is_of_state);
  EXPECT_FALSE(samples[2].is_of_state);
}

TEST(Samples, ADamagedFileSaysWhere) {
  const auto said = [](const std::string& lines) {
    return samples_from_csv(samples_header() + "\n" + lines).status().message();
  };
  EXPECT_EQ(said("a/b,3,0,1,x,1,0,1,0,1 2,,0,,spawn,0 0\n"), "sample 1: column 'global_us' cannot be 'x'");
  EXPECT_EQ(said("a/b,3,0,1,1,1,0,1,0,1 x,,0,,spawn,0 0\n"), "sample 1: column 'rank_us' cannot be '1 x'");
  EXPECT_EQ(said("a/b,3\n"), "line 2 has 2 fields, the first line names 15 columns");
}

TEST(Samples, APathThatCannotBeWrittenIsTheUsersMistake) {
  const auto file = SamplesFile::open("/nowhere/at/all");
  EXPECT_EQ(file.status().code(), Code::invalid_argument);
  EXPECT_NE(file.status().message().find("'/nowhere/at/all'"), std::string::npos);
}

}  // namespace
}  // namespace tutti::harness::record
