// SPDX-License-Identifier: Apache-2.0
// The table of NCCL's functions against NCCL's own header, wherever there is one that has them all.
#include <gtest/gtest.h>

#include "harness/backends/nccl/library.h"
#include "suites/backends/same_calls.h"
#ifdef TUTTI_HAS_NCCL_HEADERS
#include <nccl.h>
#endif

namespace tutti::backend_nccl {
namespace {

TEST(NcclHeaders, SayWhatTheTableSays) {
#ifdef TUTTI_HAS_NCCL_HEADERS
#define TUTTI_COMPARED(result, name, parameters)                                                                     \
  EXPECT_TRUE(are_called_alike(static_cast<result(*) parameters>(nullptr), static_cast<decltype(&::name)>(nullptr))) \
      << #name;
  TUTTI_NCCL_FUNCTIONS(TUTTI_COMPARED)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  TUTTI_NCCL_LATER_FUNCTIONS(TUTTI_COMPARED)
#endif
#undef TUTTI_COMPARED
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
  EXPECT_EQ(kSuccess, ncclSuccess);
  EXPECT_EQ(kInProgress, ncclInProgress);
  EXPECT_EQ(kNoColour, NCCL_SPLIT_NOCOLOR);
  EXPECT_EQ(kScalarOfHost, ncclScalarHostImmediate);
  const std::pair<int, int> numbers[] = {
    {kSum, ncclSum},
    {kProd, ncclProd},
    {kMax, ncclMax},
    {kMin, ncclMin},
    {kAvg, ncclAvg},
    {kInt8, ncclInt8},
    {kUint8, ncclUint8},
    {kInt32, ncclInt32},
    {kUint32, ncclUint32},
    {kInt64, ncclInt64},
    {kUint64, ncclUint64},
    {kHalf, ncclHalf},
    {kFloat, ncclFloat},
    {kDouble, ncclDouble},
    {kBfloat16, ncclBfloat16},
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    {kF8e4m3, ncclFloat8e4m3},
    {kF8e5m2, ncclFloat8e5m2},
    {kSymmetricWindow, NCCL_WIN_COLL_SYMMETRIC},
#endif
    {kLeastVersion, NCCL_VERSION(2, 18, 0)},
    {kVersionOfF8, NCCL_VERSION(2, 24, 0)}
  };
  for (const auto& [ours, theirs] : numbers) EXPECT_EQ(ours, theirs);
#else
  GTEST_SKIP() << "nccl.h is not found here";
#endif
}

}  // namespace
}  // namespace tutti::backend_nccl
