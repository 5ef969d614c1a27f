// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/journal.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using Value = std::array<std::uint64_t, 9>;

TEST(Told, IsReadWholeWhileItIsWritten) {
  const auto told = std::make_unique<Told<Value>>();
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 20000; ++i) {
      Value value;
      value.fill(i);
      told->write(value);
      if (i % 64 == 0) std::this_thread::yield();
    }
    is_over = true;
  });
  std::uint64_t last = 0, reads = 0;
  while (!is_over || reads == 0) {
    const auto value = told->read();
    if (!value) continue;
    ++reads;
    ASSERT_THAT(*value, testing::Each(value->front()));
    ASSERT_GE(value->front(), last);
    last = value->front();
  }
  writer.join();
  EXPECT_EQ(told->read()->front(), 20000U);
}

TEST(Told, OfZeroedMemoryIsZeros) {
  alignas(64) std::array<std::byte, sizeof(Told<Value>)> memory{};
  const auto& told = *reinterpret_cast<const Told<Value>*>(memory.data());
  EXPECT_THAT(*told.read(), testing::Each(0U));
}

}  // namespace
}  // namespace tutti
