// SPDX-License-Identifier: Apache-2.0
// The file in which process 0 says where it listens: what it replaces, and whom a reader believes.
#include "harness/hosts/meeting_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MeetingFileTest : public testing::Test {
 protected:
  MeetingFileTest() {
    std::string name = testing::TempDir() + "tutti-meeting-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~MeetingFileTest() override { std::filesystem::remove_all(folder_); }
  MeetingFileTest(const MeetingFileTest&) = delete;
  MeetingFileTest& operator=(const MeetingFileTest&) = delete;

  [[nodiscard]] std::string path() const { return folder_ / "meeting"; }
  void put(const std::string& text) const { std::ofstream(path()) << text; }

  std::filesystem::path folder_;
};

TEST_F(MeetingFileTest, IsOfItsWriterAloneAndGoesWithIt) {
  put("192.0.2.1:1\n");
  {
    MeetingFile file(path());
    ASSERT_TRUE(file.write("192.0.2.7:4711").is_ok());
    EXPECT_EQ(MeetingFile(path()).read().value(), "192.0.2.7:4711");
    struct stat about = {};
    ASSERT_EQ(::stat(path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(MeetingFileTest, OfAnotherJobStays) {
  {
    MeetingFile file(path());
    ASSERT_TRUE(file.write("192.0.2.7:4711").is_ok());
    put("192.0.2.8:1\n");
  }
  EXPECT_EQ(MeetingFile(path()).read().value(), "192.0.2.8:1");
}

TEST_F(MeetingFileTest, ALinkAtItsPlaceIsReplacedAndNotFollowed) {
  const std::filesystem::path other = folder_ / "other";
  std::ofstream(other) << "as it was";
  std::filesystem::create_symlink(other, path());
  std::filesystem::create_symlink(other, path() + "." + std::to_string(::getpid()));  // a name that can be guessed
  MeetingFile file(path());
  ASSERT_TRUE(file.write("192.0.2.7:4711").is_ok());
  EXPECT_FALSE(std::filesystem::is_symlink(path()));
  std::string text;
  std::getline(std::ifstream(other), text);
  EXPECT_EQ(text, "as it was");
}

TEST_F(MeetingFileTest, AFailureLeavesNothing) {
  std::filesystem::create_directory(path());
  MeetingFile file(path());
  EXPECT_THAT(file.write("192.0.2.7:4711").message(), AllOf(HasSubstr("--init: cannot write"), HasSubstr(path())));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(MeetingFileTest, IsNotThereUntilItIsWhole) {
  const MeetingFile file(path());
  EXPECT_EQ(file.read().value(), "");
  put("192.0.2.7:47");
  EXPECT_EQ(file.read().value(), "");
  put(std::string(600, 'a'));
  EXPECT_THAT(file.read().status().message(), HasSubstr("a line of at most 512 bytes"));
}

TEST_F(MeetingFileTest, WhatIsNoFileIsSaid) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(MeetingFile(path()).read().status().message(), HasSubstr("no regular file"));
}

TEST_F(MeetingFileTest, OfAnotherUserIsNotBelieved) {
  put("192.0.2.7:4711\n");
  if (::chown(path().c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root gives a file away";
  const Status why = MeetingFile(path()).read().status();
  EXPECT_EQ(why.code(), Code::unavailable);
  EXPECT_THAT(why.message(),
              AllOf(HasSubstr("belongs to user 12345"), HasSubstr("decides where this process connects")));
}

}  // namespace
}  // namespace tutti::harness
