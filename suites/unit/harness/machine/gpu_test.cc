// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/gpu.h"

#include <gtest/gtest.h>

namespace tutti::harness::machine {
namespace {

TEST(Throttling, NamesWhatSlowsDownWhatRuns) {
  EXPECT_EQ(throttling_text(0), "");
  EXPECT_EQ(throttling_text(0x1 | 0x2 | 0x10 | 0x100), "") << "it idles, or its clocks were chosen";
  EXPECT_EQ(throttling_text(0x4), "the power limit");
  EXPECT_EQ(throttling_text(0x8 | 0x20 | 0x40 | 0x80), "the hardware, heat, the power supply");
}

TEST(GpuDisturbances, AreWhatWasSeenOnEitherSide) {
  constexpr unsigned kOwn = 7;
  const GpuSeen idle{.throttling = 0x1, .ecc_errors = 2, .processes = {kOwn}};
  EXPECT_EQ(gpu_disturbances(idle, idle, kOwn), "");
  GpuSeen hot = idle;
  hot.throttling = 0x40;
  EXPECT_EQ(gpu_disturbances(hot, idle, kOwn), "gpu_throttled");
  EXPECT_EQ(gpu_disturbances(idle, hot, kOwn), "gpu_throttled");
  GpuSeen damaged = hot;
  damaged.ecc_errors = 3;
  damaged.processes = {kOwn, 8};
  EXPECT_EQ(gpu_disturbances(idle, damaged, kOwn), "gpu_throttled; gpu_ecc; gpu_shared");
}

TEST(GpuDisturbances, CountProcessesWhereTheirNumbersAreOthers) {
  const GpuSeen none{}, one{.processes = {4000}}, two{.processes = {4000, 4001}};
  EXPECT_EQ(gpu_disturbances(none, one, 7), "") << "it is this process, by the number that the host has for it";
  EXPECT_EQ(gpu_disturbances(one, two, 7), "gpu_shared");
  EXPECT_EQ(gpu_disturbances(two, two, 7, 2), "");
}

}  // namespace
}  // namespace tutti::harness::machine
