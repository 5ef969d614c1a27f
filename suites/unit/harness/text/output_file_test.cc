// SPDX-License-Identifier: Apache-2.0
#include "harness/text/output_file.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/text/file.h"
#include "harness/text/read_file.h"

namespace tutti::harness::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uid_t kStranger = 65534;

/// An empty folder for one test.
class FolderOfOutputs : public ::testing::Test {
 protected:
  FolderOfOutputs() {
    std::string pattern = ::testing::TempDir() + "tutti-outputs-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FolderOfOutputs() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  [[nodiscard]] std::string content(const std::string& name) const {
    return read_file(path(name), kMostInResult).value();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  /// A link of `owner`, where this user can make one.
  [[nodiscard]] bool link(const std::string& target, const std::string& name, uid_t owner) const {
    fs::create_symlink(target, path(name));
    return ::lchown(path(name).c_str(), owner, owner) == 0;
  }

  std::string folder_;
};

using OutputFileTest = FolderOfOutputs;

TEST_F(OutputFileTest, LeavesNothingOfAFileThatWasNotWritten) {
  EXPECT_TRUE(OutputFile::open(path("new.xml")).is_ok());
  EXPECT_EQ(files(), 0U);
  put("old.xml", "of yesterday");
  EXPECT_TRUE(OutputFile::open(path("old.xml")).is_ok());
  EXPECT_EQ(content("old.xml"), "of yesterday");
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, KeepsTheModeAndWhatLiesBeside) {
  put("x.json", "of yesterday");
  put("x.json.part", "the user's own");
  ::chmod(path("x.json").c_str(), 0640);
  auto file = OutputFile::open(path("x.json"));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  for (const char* text : {"first", "second, longer", "3"}) {
    ASSERT_TRUE(file.value().replace(text).is_ok());
    EXPECT_EQ(content("x.json"), text);
  }
  struct stat about {};
  ASSERT_EQ(::stat(path("x.json").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0640U);
  EXPECT_EQ(content("x.json.part"), "the user's own");
  EXPECT_EQ(files(), 2U);
}

TEST_F(OutputFileTest, FollowsOwnLinksToTheEnd) {
  fs::create_directory(path("far"));
  fs::create_symlink("far/target", path("second"));
  fs::create_symlink("second", path("first"));
  auto file = OutputFile::open(path("first"));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  ASSERT_TRUE(file.value().replace("new").is_ok());
  EXPECT_TRUE(fs::is_symlink(path("first")) && fs::is_symlink(path("second")));
  EXPECT_EQ(content("far/target"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(path("far")), fs::directory_iterator()), 1);
}

TEST_F(OutputFileTest, RefusesLinksThatLeadNowhere) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_THAT(OutputFile::open(path("a")).status().message(), HasSubstr("symbolic links"));
  fs::create_symlink("none/x", path("c"));
  EXPECT_THAT(OutputFile::open(path("c")).status().message(), HasSubstr("No such file"));
  EXPECT_EQ(files(), 3U);
}

TEST_F(OutputFileTest, RefusesAStrangersLinkInAnyPlaceOfAChain) {
  put("precious", "mine");
  fs::create_directory(path("deep"));
  if (!link("precious", "strange", kStranger)) GTEST_SKIP() << "links of another user need root";
  ASSERT_TRUE(link(folder_, "around", kStranger));
  fs::create_symlink("strange", path("chain"));
  for (const std::string& name : {path("strange"), path("chain"), path("around/new"), path("around/precious")}) {
    const auto words = AllOf(HasSubstr("the symbolic link '"), HasSubstr("belongs to user 65534"));
    EXPECT_THAT(std::string(OutputFile::open(name).status().message()), words) << name;
    EXPECT_THAT(std::string(LineFile::open(name).status().message()), words) << name;
    EXPECT_THAT(std::string(replace_file(name, "text").message()), words) << name;
  }
  EXPECT_EQ(content("precious"), "mine");
}

TEST_F(OutputFileTest, FollowsTheLinkOfTheFoldersOwner) {
  fs::create_directory(path("theirs"));
  if (!link("target", "theirs/link", kStranger)) GTEST_SKIP() << "links of another user need root";
  ASSERT_EQ(::chown(path("theirs").c_str(), kStranger, kStranger), 0);
  auto file = OutputFile::open(path("theirs/link"));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_TRUE(file.value().replace("text").is_ok());
  EXPECT_EQ(content("theirs/target"), "text");
}

TEST_F(OutputFileTest, RefusesASecondNameThatOthersMayHaveMade) {
  put("precious", "mine");
  fs::create_directory(path("open"));
  ::chmod(path("open").c_str(), 01777);
  fs::create_hard_link(path("precious"), path("open/x"));
  EXPECT_THAT(LineFile::open(path("open/x")).status().message(), HasSubstr("the file has 2 names"));
  EXPECT_THAT(OutputFile::open(path("open/x")).status().message(), HasSubstr("the file has 2 names"));
  EXPECT_EQ(content("precious"), "mine");
}

TEST_F(OutputFileTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(OutputFile::open(folder_).status().message(), HasSubstr("Is a directory"));
  EXPECT_THAT(OutputFile::open(path("")).status().message(), HasSubstr("Is a directory"));
  EXPECT_EQ(OutputFile::open("/dev/full").status().message(), "cannot write '/dev/full': No space left on device");
  EXPECT_THAT(OutputFile::open(path("none/x")).status().message(), HasSubstr("does not exist"));
  EXPECT_THAT(OutputFile::open("").status().message(), HasSubstr("cannot write ''"));
}

TEST_F(OutputFileTest, WritesADeviceAndAPipeInPlace) {
  auto nothing = OutputFile::open("/dev/null");
  ASSERT_TRUE(nothing.is_ok()) << nothing.status().message();
  EXPECT_FALSE(nothing.value().is_replaceable());
  EXPECT_TRUE(nothing.value().replace("text").is_ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { std::getline(std::ifstream(path("pipe")), read, '\0'); });
  {
    auto pipe = OutputFile::open(path("pipe"));
    ASSERT_TRUE(pipe.is_ok()) << pipe.status().message();
    EXPECT_TRUE(pipe.value().replace("through the pipe").is_ok());
  }
  reader.join();
  EXPECT_EQ(read, "through the pipe");
}

TEST_F(OutputFileTest, WritesInPlaceInAFolderOfOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user is needed";
  fs::create_directory(path("theirs"));
  put("theirs/file", "a content that is longer");
  ::chmod(path("theirs/file").c_str(), 0666);
  ::chmod(folder_.c_str(), 0755);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_other = ::setresgid(kStranger, kStranger, kStranger) == 0 && ::setresuid(-1, kStranger, -1) == 0;
    auto file = OutputFile::open(path("theirs/file"));
    const bool is_written =
        file.is_ok() && file.value().replace("short").is_ok() && file.value().replace("last").is_ok();
    ::_exit(is_other && is_written && !OutputFile::open(path("theirs/new")).is_ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content("theirs/file"), "last");
}

/// A file of this process may have `bytes` bytes at most meanwhile, as on a disk that fills.
class LittleDisk {
 public:
  explicit LittleDisk(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  LittleDisk(const LittleDisk&) = delete;
  LittleDisk& operator=(const LittleDisk&) = delete;
  ~LittleDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST_F(OutputFileTest, FindsThatTextHasNoPlace) {
  {
    const LittleDisk little(100);
    const Status status = OutputFile::open(path("x")).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), HasSubstr("cannot write '" + path("x") + "': "));
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(OutputFileTest, StaysAsItWasIfTheTextHasNoPlace) {
  auto file = OutputFile::open(path("x"));
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(file.value().replace("before").is_ok());
  {
    const LittleDisk little(100);
    EXPECT_FALSE(file.value().replace(std::string(200, 'x')).is_ok());
  }
  EXPECT_EQ(content("x"), "before");
  EXPECT_EQ(files(), 1U);
}

/// What another process says of opening the file.
std::string words_of_another(const std::string& path) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string words(LineFile::open(path).status().message());
    [[maybe_unused]] const ssize_t written = ::write(ends[1], words.data(), words.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string words(1000, '\0');
  words.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], words.data(), words.size()), 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return words;
}

TEST_F(OutputFileTest, IsOfOneProcessAtATime) {
  const std::string ours = "another job writes it, process " + std::to_string(::getpid());
  {
    auto whole = OutputFile::open(path("x"));
    ASSERT_TRUE(whole.is_ok());
    EXPECT_THAT(words_of_another(path("x")), HasSubstr(ours));
    ASSERT_TRUE(whole.value().replace("one").is_ok());
    EXPECT_THAT(words_of_another(path("x")), HasSubstr(ours)) << "the new file too";
    fs::create_symlink("x", path("link"));
    EXPECT_THAT(words_of_another(path("link")), HasSubstr(ours));
    EXPECT_THAT(OutputFile::open(path("x")).status().message(), HasSubstr("another output of this command"));
  }
  EXPECT_EQ(words_of_another(path("x")), "");
  const auto lines = LineFile::open(path("rows"));
  ASSERT_TRUE(lines.is_ok());
  EXPECT_THAT(words_of_another(path("rows")), HasSubstr(ours));
}

TEST_F(OutputFileTest, ReplaceFileMakesANewOneWithAMode) {
  ASSERT_TRUE(replace_file(path("secret"), "text", 0600).is_ok());
  struct stat about {};
  ASSERT_EQ(::stat(path("secret").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600U);
  EXPECT_EQ(content("secret"), "text");
}

}  // namespace
}  // namespace tutti::harness::text
