// SPDX-License-Identifier: Apache-2.0
// Cases for the tests of sessions.
#pragma once

#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "harness/cases/case.h"

namespace tutti::harness::session {

inline Case case_of(std::string_view id) {
  auto one = parse_case_id(id);
  EXPECT_TRUE(one.is_ok()) << one.status().message();
  return std::move(one).value();
}

inline constexpr const char* kReduce = "all_reduce/tutti.ring/local/float/sum/P3.threads/none/64B/out/private/isolated";
inline constexpr const char* kBroadcast =
    "broadcast/tutti.direct/local/int32/none/P3.threads/root2/1024B/in/shared/isolated";
inline constexpr const char* kBarrier =
    "barrier/tutti.dissemination/local/none/none/P3.threads/none/0B/none/none/isolated";

}  // namespace tutti::harness::session
