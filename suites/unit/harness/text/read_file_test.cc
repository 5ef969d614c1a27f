// SPDX-License-Identifier: Apache-2.0
#include "harness/text/read_file.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/types/descriptor.h"

namespace tutti::harness::text {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::size_t kMost = 100;

class ReadFile : public ::testing::Test {
 protected:
  ReadFile() {
    std::string pattern = ::testing::TempDir() + "tutti-read-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string with(const std::string& text) const {
    std::ofstream(path("file"), std::ios::binary) << text;
    return path("file");
  }
  [[nodiscard]] std::string pipe() const {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }
  static std::string refusal(const std::string& path, std::chrono::milliseconds patience = 50ms) {
    const auto text = read_file(path, kMost, patience);
    EXPECT_EQ(text.status().code(), Code::invalid_argument) << path;
    return text.status().message();
  }

 private:
  std::string folder_;
};

TEST_F(ReadFile, HasAllOfIt) {
  EXPECT_EQ(read_file(with(""), kMost).value(), "");
  EXPECT_EQ(read_file(with("a\nb"), kMost).value(), "a\nb");
  EXPECT_EQ(read_file(with(std::string(kMost, 'x')), kMost).value(), std::string(kMost, 'x'));
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(read_file(with(large), kMostInSuite).value(), large);
}

TEST_F(ReadFile, LeavesAByteOrderMarkOut) {
  EXPECT_EQ(read_file(with("\xef\xbb\xbfname"), kMost).value(), "name");
  EXPECT_EQ(read_file(with("\xef\xbb\xbf"), kMost).value(), "");
  EXPECT_THAT(refusal(with(std::string("\xff\xfe"
                                       "a\0",
                                       4))),
              EndsWith("it is UTF-16: save it as UTF-8"));
}

TEST_F(ReadFile, RefusesWhatIsTooLarge) {
  EXPECT_THAT(refusal(with(std::string(kMost + 1, 'x'))), EndsWith("it has 101 bytes, at most 100 bytes are read"));
  std::filesystem::resize_file(with(""), std::uintmax_t{3} << 40);
  EXPECT_THAT(refusal(path("file")), EndsWith("it has 3 TiB, at most 100 bytes are read"));
}

TEST_F(ReadFile, RefusesWhatHasNoEndOrIsNoText) {
  EXPECT_THAT(refusal("/dev/zero"), EndsWith("it is no text: its byte 1 is 0"));
  EXPECT_THAT(refusal(with(std::string("ab\0", 3))), EndsWith("it is no text: its byte 3 is 0"));
  EXPECT_THAT(refusal("/dev/full"), HasSubstr("its byte 1 is 0"));
}

TEST_F(ReadFile, RefusesWhatCannotBeRead) {
  EXPECT_EQ(refusal("/nowhere/x"), "cannot read '/nowhere/x': No such file or directory");
  EXPECT_EQ(refusal("/tmp"), "cannot read '/tmp': Is a directory");
  EXPECT_THAT(refusal("/dev/mem\x1b"), HasSubstr("\\x1b"));
}

TEST_F(ReadFile, WaitsForAPipeAndNotWithoutEnd) {
  const std::string name = pipe();
  EXPECT_THAT(refusal(name), EndsWith("nothing came from it for 0.05 s")) << "no process writes";
  std::thread late([&] {
    std::this_thread::sleep_for(20ms);
    std::ofstream(name) << "written late";
  });
  EXPECT_EQ(read_file(name, kMost, 60s).value(), "written late");
  late.join();
  const Descriptor writer(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::write(writer.get(), "half", 4), 4);
  EXPECT_THAT(refusal(name), EndsWith("nothing came from it for 0.05 s")) << "its writer stays silent";
}

TEST_F(ReadFile, EndsWhereAPipeHasTooMuch) {
  const std::string name = pipe();
  const Descriptor writer(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::write(writer.get(), std::string(4096, 'x').data(), 4096), 4096);
  EXPECT_THAT(refusal(name), EndsWith("it has more than 100 bytes"));
}

}  // namespace
}  // namespace tutti::harness::text
