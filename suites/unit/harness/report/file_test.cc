// SPDX-License-Identifier: Apache-2.0
#include "harness/report/file.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

using ::testing::HasSubstr;

/// An empty folder for one test.
class FolderOfFiles : public ::testing::Test {
 protected:
  FolderOfFiles() {
    std::string pattern = ::testing::TempDir() + "tutti-files-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FolderOfFiles() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] bool is_empty() const { return std::filesystem::is_empty(folder_); }

 private:
  std::string folder_;
};

using CheckReplaceable = FolderOfFiles;

TEST_F(CheckReplaceable, LeavesNothing) {
  EXPECT_TRUE(check_replaceable(path("new.xml")).is_ok());
  EXPECT_TRUE(is_empty());
  std::ofstream(path("old.xml")) << "of yesterday";
  EXPECT_TRUE(check_replaceable(path("old.xml")).is_ok());
  EXPECT_EQ(read_file(path("old.xml")).value(), "of yesterday");
  EXPECT_FALSE(std::filesystem::exists(path("old.xml.part")));
}

TEST_F(CheckReplaceable, RefusesWhatIsNoFile) {
  for (const std::string& name : {std::string("/dev/full"), std::string("/dev/null"), path("")}) {
    const Status status = check_replaceable(name);
    EXPECT_EQ(status.code(), Code::invalid_argument) << name;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("cannot write '" + name + "': it exists and is not a regular file"));
  }
  EXPECT_THAT(std::string(check_replaceable(path("none/x")).message()), HasSubstr("does not exist"));
}

/// As where a file system is full: a file can be made, and holds nothing.
TEST_F(CheckReplaceable, FindsThatTextHasNoPlace) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{.rlim_cur = 100, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status status = check_replaceable(path("x"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write '" + path("x") + "': "));
  EXPECT_TRUE(is_empty());
}

}  // namespace
}  // namespace tutti::harness
