// SPDX-License-Identifier: Apache-2.0
#include "harness/text/streams.h"

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::text {
namespace {

/// `descriptor` is another file meanwhile.
class Instead {
 public:
  Instead(int descriptor, int other) : descriptor_(descriptor), kept_(dup(descriptor)) {
    EXPECT_GE(dup2(other, descriptor), 0);
    close(other);
  }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;
  ~Instead() {
    dup2(kept_, descriptor_);
    close(kept_);
  }

 private:
  int descriptor_;
  int kept_;
};

TEST(ToStderr, IsNotHeldUpByAFullDiskOrAReaderThatIsGone) {
  {
    const Instead full(STDERR_FILENO, open("/dev/full", O_WRONLY));
    to_stderr("lost\n");
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const Instead broken(STDERR_FILENO, ends[1]);
  to_stderr("lost\n");  // and no SIGPIPE
  to_stderr("lost\n");
}

TEST(ToStderr, ArrivesWhereItCan) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  {
    const Instead pipe_end(STDERR_FILENO, ends[1]);
    to_stderr("said\n");
  }
  std::array<char, 16> text{};
  EXPECT_EQ(read(ends[0], text.data(), text.size()), 5);
  EXPECT_STREQ(text.data(), "said\n");
  close(ends[0]);
}

TEST(Console, KeepsTheFirstFailureOfStdoutAlone) {
  Console console;
  Console aside = Console::beside(true);
  Console silent(Console::Place::nowhere);
  {
    std::fflush(stdout);
    const Instead out(STDOUT_FILENO, open("/dev/full", O_WRONLY));
    const Instead errors(STDERR_FILENO, open("/dev/full", O_WRONLY));
    for (Console* one : {&console, &aside, &silent}) one->print("lost\n");
  }
  clearerr(stdout);
  EXPECT_EQ(console.failure().message(), "the output cannot be written: No space left on device");
  EXPECT_EQ(console.failure().code(), Code::invalid_argument);
  EXPECT_TRUE(aside.failure().is_ok());
  EXPECT_TRUE(silent.failure().is_ok());
}

TEST(Columns, AreThoseOfTheVariableWhereItIsANumber) {
  const char* const before = std::getenv("COLUMNS");
  const std::string kept = before == nullptr ? "" : before;
  const int null = open("/dev/null", O_WRONLY);
  setenv("COLUMNS", "97", 1);
  EXPECT_EQ(columns_of(null), 97U);
  for (const char* const other : {"", "0", "-3", "wide", "80x"}) {
    setenv("COLUMNS", other, 1);
    EXPECT_FALSE(columns_of(null).has_value()) << other;
  }
  unsetenv("COLUMNS");
  EXPECT_FALSE(columns_of(null).has_value());
  if (!kept.empty()) setenv("COLUMNS", kept.c_str(), 1);
  close(null);
}

}  // namespace
}  // namespace tutti::harness::text
