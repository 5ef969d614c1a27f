// SPDX-License-Identifier: Apache-2.0
// Cells whose buffers lie in memory that the runner cannot touch: prepared, run and verified by the same code as those
// in the host's memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/measure/block.h"
#include "harness/measure/check.h"
#include "harness/measure/variant.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/plain_backend.h"
#include "suites/unit/harness/verify/device_memory.h"

namespace tutti::harness::measure {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kDeviceRanks = 3;

/// all_gather on a device: the last rank that posts copies the blocks of all.
class DeviceGather final : public PlainBackend {
 public:
  explicit DeviceGather(DeviceMemory& device) : PlainBackend("device"), device_(device) {}
  /// After each call, with the output of rank 1 as the device sees it.
  void set_after_call(std::function<void(std::byte*)> after_call) { after_call_ = std::move(after_call); }

  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                          std::span<const RankBuffers> buffers) override {
    return std::unique_ptr<Prepared>(new Gather(*this, one, buffers));
  }

 private:
  class Gather final : public Prepared {
   public:
    Gather(DeviceGather& backend, const Case& one, std::span<const RankBuffers> buffers)
        : backend_(backend),
          block_(static_cast<std::size_t>(one.count) * size_of(one.dtype)),
          buffers_(buffers.begin(), buffers.end()) {}
    Status post(std::size_t index) override {
      if (index + 1 < buffers_.size()) return {};
      for (const RankBuffers& to : buffers_) {
        for (std::size_t from = 0; from < buffers_.size(); ++from) {
          std::memmove(backend_.device_.at(to.output) + from * block_, backend_.device_.at(buffers_[from].input),
                       block_);
        }
      }
      if (backend_.after_call_) backend_.after_call_(backend_.device_.at(buffers_[1].output));
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return true; }

   private:
    DeviceGather& backend_;
    std::size_t block_;
    std::vector<RankBuffers> buffers_;
  };

  DeviceMemory& device_;
  std::function<void(std::byte*)> after_call_;
};

class OnADevice : public testing::Test {
 protected:
  [[nodiscard]] Case gather_of(Count count) const {
    Case one;
    one.collective = Collective::all_gather;
    one.ranks = kDeviceRanks;
    one.ranks_as = RanksAs::tasks;
    one.count = count;
    one.bytes = buffer_bytes(one.problem(), one.count, size_of(one.dtype));
    return one;
  }
  [[nodiscard]] Variant variant_of(const Case& one) {
    auto variant = Variant::create(runner_, {.backend = backend_,
                                             .memory = [this](const Case&, std::size_t) { return device_.allocator(); },
                                             .instance = one,
                                             .misaligns = true});
    EXPECT_TRUE(variant.is_ok()) << variant.status().message();
    return std::move(variant).value();
  }

  DeviceMemory device_;
  DeviceGather backend_{device_};
  BoardMemory memory_{kDeviceRanks};
  Runner runner_{memory_.board(), {.runner = 0, .runners = 1, .job_ranks = kDeviceRanks, .ranks = {0, 1, 2}}};
};

TEST_F(OnADevice, TheHostCannotFollowAnAddress) {
  const Allocator allocator = device_.allocator();
  auto* const there = static_cast<volatile std::byte*>(allocator.allocate(100).value());
  EXPECT_DEATH(static_cast<void>(there[0]), "");
  allocator.release(const_cast<std::byte*>(there));
}

TEST_F(OnADevice, ACellIsCheckedLikeAnyOther) {
  for (const Count count : {1, 500, 300'000}) {
    Variant variant = variant_of(gather_of(count));
    const auto row = check_case(runner_, variant);
    ASSERT_TRUE(row.is_ok()) << row.status().message();
    EXPECT_EQ(row.value().verdict, Verdict::ok) << row.value().reason;
  }
  EXPECT_EQ(device_.blocks(), 0U) << "all of it was given back";
}

TEST_F(OnADevice, AWrongElementIsFoundWhereItIs) {
  backend_.set_after_call([](std::byte* output) { output[4 * 407 + 1] ^= std::byte{0x10}; });
  Variant variant = variant_of(gather_of(300));
  const auto row = check_case(runner_, variant);
  ASSERT_TRUE(row.is_ok()) << row.status().message();
  EXPECT_EQ(row.value().verdict, Verdict::wrong);
  EXPECT_THAT(row.value().reason, AllOf(HasSubstr("rank 1: output: 1 of 900 wrong, the first at 407"),
                                        HasSubstr("expected"), HasSubstr("actual")));
}

TEST_F(OnADevice, AWriteBeyondTheOutputIsFound) {
  backend_.set_after_call([](std::byte* output) { output[4 * 900 + 2] = std::byte{0x1}; });
  Variant variant = variant_of(gather_of(300));
  const auto row = check_case(runner_, variant);
  ASSERT_TRUE(row.is_ok()) << row.status().message();
  EXPECT_THAT(row.value().reason, HasSubstr("byte 3 past the end of the buffer of 3600 bytes was overwritten"));
}

TEST_F(OnADevice, ACellInPlaceIsCheckedToo) {
  Case one = gather_of(500);
  one.is_in_place = true;
  Variant variant = variant_of(one);
  const auto row = check_case(runner_, variant);
  ASSERT_TRUE(row.is_ok()) << row.status().message();
  EXPECT_EQ(row.value().verdict, Verdict::ok) << row.value().reason;
}

TEST_F(OnADevice, ABlockOfSamplesIsMeasuredAndVerified) {
  int calls = 0;
  backend_.set_after_call([&](std::byte* output) {
    if (++calls == 5) output[8] ^= std::byte{1};  // the third sample, after two discarded calls
  });
  Variant variant = variant_of(gather_of(500));
  const auto wrong = run_block(runner_, variant, {.salt = 7, .samples = 6, .chosen = 2});
  ASSERT_TRUE(wrong.is_ok()) << wrong.status().message();
  EXPECT_EQ(wrong.value().wrong, 1) << wrong.value().reason;
  const auto right = run_block(runner_, variant, {.salt = 70, .samples = 6, .chosen = 2});
  ASSERT_TRUE(right.is_ok()) << right.status().message();
  EXPECT_EQ(right.value().wrong, 0) << right.value().reason;
  EXPECT_EQ(right.value().samples.size(), 6U);
}

}  // namespace
}  // namespace tutti::harness::measure
