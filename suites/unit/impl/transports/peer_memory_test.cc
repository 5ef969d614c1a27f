// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/peer_memory.h"

#include <array>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;

/// A child of this process, whose memory is as this one's was, until it is ended.
class Child {
 public:
  Child() : process_(fork()) {
    if (process_ == 0) {
      while (true) ::pause();
    }
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] int process() const { return process_; }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_;
};

class PeerMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!expect_peer_memory().is_ok()) GTEST_SKIP() << "this machine does not let processes do so";
  }
};

std::array<std::byte, 3 * 4096> memory;

TEST_F(PeerMemory, IsReadAndWrittenInAnotherProcess) {
  memory.fill(std::byte{7});
  Child child;
  memory.fill(std::byte{1});
  std::array<std::byte, memory.size()> here{};
  ASSERT_TRUE(read_memory_of(child.process(), here.data(), memory.data(), here.size()).is_ok());
  EXPECT_THAT(here, testing::Each(std::byte{7}));
  here.fill(std::byte{9});
  ASSERT_TRUE(write_memory_of(child.process(), here.data(), memory.data() + 1, here.size() - 2).is_ok());
  EXPECT_THAT(memory, testing::Each(std::byte{1}));
  ASSERT_TRUE(read_memory_of(child.process(), here.data(), memory.data(), here.size()).is_ok());
  EXPECT_EQ(here.front(), std::byte{7});
  EXPECT_EQ(here[1], std::byte{9});
  EXPECT_EQ(here.back(), std::byte{7});
}

TEST_F(PeerMemory, OfAnotherProcessThanMeantIsNotTaken) {
  MemoryOffer offer = offer_memory();
  Child child;
  EXPECT_TRUE(try_memory(offer).is_ok());
  offer.process = static_cast<std::uint64_t>(child.process());
  EXPECT_TRUE(try_memory(offer).is_ok()) << "it has the same word";
  ++offer.word;
  const Status refused = try_memory(offer);
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is another one here"));
}

TEST_F(PeerMemory, ThatIsNotThereIsAnErrorThatNamesTheProcess) {
  Child child;
  std::byte here{};
  const Status unmapped = read_memory_of(child.process(), &here, reinterpret_cast<const std::byte*>(16), 1);
  EXPECT_EQ(unmapped.code(), Code::io);
  EXPECT_THAT(
      std::string(unmapped.message()),
      HasSubstr(fmt::format("cannot copy 1 bytes from the memory of process {}: Bad address", child.process())));
  const int process = child.process();
  child.end();
  const Status gone = write_memory_of(process, &here, memory.data(), 1);
  EXPECT_THAT(std::string(gone.message()),
              HasSubstr(fmt::format("cannot copy 1 bytes to the memory of process {}: No such process", process)));
}

}  // namespace
}  // namespace tutti
