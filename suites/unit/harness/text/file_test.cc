// SPDX-License-Identifier: Apache-2.0
#include "harness/text/file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/csv.h"
#include "harness/text/streams.h"
#include "suites/unit/harness/record/sample_rows.h"

namespace tutti::harness::text {
namespace {

/// A file of this process may have `bytes` bytes at most meanwhile, as on a disk that fills.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(LineFile, HoldsNoPartOfALineWhereTheDiskIsFull) {
  const std::string path = temporary_path(".lines");
  auto file = LineFile::open(path);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  ASSERT_TRUE(file.value().append("one\n").is_ok());
  {
    const FullDisk full(10);
    const Status status = file.value().append("a line that is longer\n");
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), testing::StartsWith("cannot write '" + path + "': "));
    EXPECT_EQ(content_of(path), "one\n");
    EXPECT_TRUE(file.value().append("two\n").is_ok()) << "a shorter one fits";
  }
  EXPECT_TRUE(file.value().append("three\n").is_ok());
  EXPECT_EQ(content_of(path), "one\ntwo\nthree\n");
  std::filesystem::remove(path);
}

TEST(LineFile, OfRowsEndsWithAWholeOne) {
  const std::string path = temporary_path(".rows.csv");
  auto file = CsvFile::open(path);
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(file.value().write(skipped_row()).is_ok());
  const std::string before = content_of(path);
  {
    const FullDisk full(before.size() + 50);
    EXPECT_EQ(file.value().write(measured_row()).code(), Code::invalid_argument);
  }
  EXPECT_EQ(content_of(path), before);
  std::filesystem::remove(path);
}

TEST(CheckApart, StdoutIsNotForTwo) {
  const std::string path = "-";
  EXPECT_EQ(check_apart({"--csv", path}, {"--json", path}, ".json").message(),
            "--csv and --json are both '-', which is stdout: name a file for one of them");
  const std::string file = "./-";
  EXPECT_TRUE(check_apart({"--csv", path}, {"--json", file}, ".json").is_ok()) << "a file of that name";
}

}  // namespace
}  // namespace tutti::harness::text
