// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/slowed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/machine/clock.h"

namespace tutti::harness::backends {
namespace {

using ::testing::HasSubstr;

/// An operation that takes as long as the clock says.
class Taking final : public Prepared {
 public:
  explicit Taking(std::int64_t ns) : ns_(ns) {}
  Status post(std::size_t) override {
    begin_ns_ = monotonic_ns();
    return {};
  }
  Result<bool> test(std::size_t) override { return monotonic_ns() >= begin_ns_ + ns_; }

 private:
  std::int64_t ns_;
  std::int64_t begin_ns_ = 0;
};

TEST(SlowDown, IsAShareAndASize) {
  const auto at_size = parse_slow_down("10%@1M");
  ASSERT_TRUE(at_size.is_ok()) << at_size.status().message();
  EXPECT_DOUBLE_EQ(at_size.value().share, 0.1);
  EXPECT_EQ(at_size.value().bytes, 1 << 20);
  EXPECT_FALSE(parse_slow_down("2.5%").value().bytes.has_value());
  for (const char* text : {"", "10", "%", "-5%", "0%", "10%%", "nan%", "10%@", "10%@1X", "2000%"}) {
    const auto wrong = parse_slow_down(text);
    EXPECT_EQ(wrong.status().code(), Code::invalid_argument) << text;
  }
  EXPECT_THAT(parse_slow_down("much").status().message(), HasSubstr("'much'"));
}

// It never ends before its own time and the share more; how much later is the machine's affair.
TEST(SlowDown, EndsEachOperationLaterByItsShare) {
  constexpr std::int64_t kOwnNs = 2'000'000;
  const auto prepared = slowed(std::make_unique<Taking>(kOwnNs), 0.5, 1);
  for (int operation = 0; operation < 3; ++operation) {
    const std::int64_t begin_ns = monotonic_ns();
    ASSERT_TRUE(prepared->post(0).is_ok());
    while (!prepared->test(0).value()) {
    }
    EXPECT_GE(monotonic_ns() - begin_ns, kOwnNs + kOwnNs / 2);
  }
}

}  // namespace
}  // namespace tutti::harness::backends
