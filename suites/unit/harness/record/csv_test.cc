// SPDX-License-Identifier: Apache-2.0
#include "harness/record/csv.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::record {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Scripts rely on this line. Columns are only ever appended.
TEST(Csv, HeaderIsTheContract) {
  EXPECT_THAT(
      csv_header(),
      StartsWith(
          "case,collective,backend,algorithm,transport,buffers,ranks,dtype,op,root,placement,bytes,count,cadence,"
          "launch,"
          "launches,samples,time_median,time_ci_low,time_ci_high,time_min,time_p95,time_p99,time_max,algbw,busbw,"
          "limit_fraction,verdict,wrong,slowest_rank,line_ns,reason,ranks_as,operations,checked_on,counts,time_p90,"
          "autocorrelation,warm_up,marks,limit_time,cache,skew,error_ulp,error_ulp_mean,same_on_ranks,same_on_repeats,"
          "sync,"
          "invalid_share,arrival_skew,time_from_last,last_rank,"
          "buffer_sets,overlap,overlap_called,overlap_calls,time_pure,time_computing,time_overlapped,"
          "time_overlapped_called,disturbed,machine,host,timestamp,window,pair,message_rate,"
          "rank_time_min,rank_time_mean,rank_time_max"));
}

TEST(Csv, RowQuotesWhatNeedsIt) {
  EXPECT_THAT(csv_row(measured_row()),
              StartsWith("all_reduce/tutti.two_shot/shm/float/sum/P2.processes/none/4096B/out/private/isolated,"
                         "all_reduce,tutti,two_shot,shm,private,2,float,sum,,out,4096,1024,isolated,1,1,120,"
                         "0.512,0.5,0.53,0.30000000000000004,1,12.25,1e+21,8,8,,wrong,3,1,101.5,"
                         "\"rank 1, element 7: expected \"\"3\"\", got 2,\nas if rank 0 were "
                         "missing\",processes,1,,none,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"));
}

TEST(Csv, WhatIsNotMeasuredIsEmpty) {
  EXPECT_THAT(
      csv_row(skipped_row()),
      StartsWith(
          "broadcast/openmpi.none/shm/float/none/P4.processes/root1/8B/out/private/isolated,"
          "broadcast,openmpi,none,shm,private,4,float,none,1,out,8,2,isolated,1,1,0,"
          ",,,,,,,,,,skipped,,,,no out-of-place broadcast,processes,1,,none,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"));
}

TEST(CsvFile, HoldsTheHeaderAtOnceAndEachRowWhenWritten) {
  const std::string path = temporary_path(".csv");
  Result<CsvFile> file = CsvFile::open(path);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ(content_of(path), csv_header() + "\n");
  ASSERT_TRUE(file.value().write(skipped_row()).is_ok());
  EXPECT_EQ(content_of(path), csv_header() + "\n" + csv_row(skipped_row()) + "\n") << "while the file is still open";
  std::filesystem::remove(path);
}

TEST(CsvFile, ThatCannotBeWrittenIsRefusedWhenOpened) {
  const Status missing = CsvFile::open("/nowhere/at/all.csv").status();
  EXPECT_EQ(missing.code(), Code::invalid_argument);
  EXPECT_EQ(missing.message(), "cannot write '/nowhere/at/all.csv': the directory '/nowhere/at' does not exist");
  const Status directory = CsvFile::open(testing::TempDir()).status();
  EXPECT_EQ(directory.code(), Code::invalid_argument);
  EXPECT_THAT(directory.message(), AllOf(HasSubstr(testing::TempDir()), HasSubstr("Is a directory")));
}

TEST(CsvFile, ADiskThatIsFullIsReported) {
  const Status full = CsvFile::open("/dev/full").status();
  EXPECT_EQ(full.message(), "cannot write '/dev/full': No space left on device");
}

}  // namespace
}  // namespace tutti::harness::record
