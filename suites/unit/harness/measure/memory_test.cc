// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/memory.h"

#include <gmock/gmock.h>

#include "harness/measure/limit.h"

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMemoryMi = std::int64_t{1} << 20;

Case memory_case(Collective collective, std::int64_t bytes, int ranks, Buffers buffers = Buffers::private_) {
  Case one;
  one.collective = collective;
  one.op = is_reducing(collective) ? Op::sum : Op::none;
  one.ranks = ranks;
  one.buffers = buffers;
  set_bytes(one, bytes);
  return one;
}

MemoryLeft of_cgroup(std::int64_t left) { return {.bytes = left, .of = 1024 * kMemoryMi, .is_of_cgroup = true}; }

double mebibytes(double bytes) { return bytes / static_cast<double>(kMemoryMi); }

TEST(MemoryNeed, IsThatOfEveryRanksBuffers) {
  const MemoryNeed four = memory_need({memory_case(Collective::all_reduce, 64 * kMemoryMi, 4)});
  EXPECT_NEAR(mebibytes(four.own), 2 * 4 * 64, 1);
  EXPECT_EQ(four.shared, 0);
  EXPECT_NEAR(mebibytes(four.aside), 1, 0.1) << "page tables";
  const MemoryNeed scatter = memory_need({memory_case(Collective::scatter, 64 * kMemoryMi, 4)});
  EXPECT_NEAR(mebibytes(scatter.own), 64 + 4 * 16, 1) << "the root alone has the whole input";
  Case in = memory_case(Collective::all_reduce, 64 * kMemoryMi, 4);
  in.is_in_place = true;
  EXPECT_NEAR(mebibytes(memory_need({in}).own), 4 * 64, 1);
  EXPECT_EQ(memory_need({memory_case(Collective::barrier, 0, 4)}).sum(), 0);
}

TEST(MemoryNeed, HasCopiesAndWhatReferencesAllocateBeside) {
  EXPECT_NEAR(mebibytes(memory_need({memory_case(Collective::reduce, 64 * kMemoryMi, 4)}).aside), 3 * 64, 2)
      << "outputs that are not to be written are held against a copy";
  Case theirs = memory_case(Collective::all_reduce, 64 * kMemoryMi, 4);
  theirs.backend = "openmpi";
  EXPECT_NEAR(mebibytes(memory_need({theirs}).aside), 4 * 64, 2);
  const MemoryNeed both = memory_need({memory_case(Collective::all_reduce, 64 * kMemoryMi, 4), theirs});
  EXPECT_NEAR(mebibytes(both.own), 2 * 2 * 4 * 64, 1) << "each system has buffers of its own";
}

TEST(MemoryNeed, OfALimitIsThatOfItsBuffersAlone) {
  Case limit = memory_case(Collective::all_reduce, 64 * kMemoryMi, 4, Buffers::shared);
  limit.backend = kLimitName;
  EXPECT_LT(mebibytes(memory_need({limit}).aside), 5);
}

TEST(MemoryNeed, OfSharedBuffersIsAHeapOfEachRank) {
  const MemoryNeed need = memory_need({memory_case(Collective::all_reduce, 64 * kMemoryMi, 2, Buffers::shared)});
  EXPECT_EQ(need.own, 0);
  EXPECT_NEAR(mebibytes(need.shared), 2 * 2 * 64, 1);
  EXPECT_NEAR(mebibytes(need.heap), 2 * 64, 1);
}

TEST(FitsMemory, SaysWhatDoesNotAndOfWhatLimit) {
  const MemoryNeed need = memory_need({memory_case(Collective::all_reduce, 256 * kMemoryMi, 2)});
  EXPECT_TRUE(fits_memory(need, {.left = of_cgroup(1100 * kMemoryMi)}).is_ok());
  const Status refusal = fits_memory(need, {.left = of_cgroup(1000 * kMemoryMi)});
  EXPECT_EQ(refusal.code(), Code::unavailable);
  EXPECT_THAT(refusal.message(), HasSubstr("the buffers of this cell take 1.0 GiB, with 2 MiB beside them for the "
                                           "calls; 1000 MiB are left of the 1.0 GiB of the cgroup"));
  EXPECT_FALSE(fits_memory(need, {.left = of_cgroup(1030 * kMemoryMi)}).is_ok()) << "nothing would be left for others";
  EXPECT_TRUE(fits_memory(memory_need({memory_case(Collective::all_reduce, 8, 2)}), {.left = of_cgroup(0)}).is_ok());
}

TEST(FitsMemory, CountsSharedBuffersWhereNoHeapHoldsThemYet) {
  const MemoryNeed need = memory_need({memory_case(Collective::all_reduce, 64 * kMemoryMi, 2, Buffers::shared)});
  const auto heap = static_cast<std::size_t>(need.heap);
  EXPECT_TRUE(fits_memory(need, {.left = of_cgroup(64 * kMemoryMi), .heap_bytes = heap}).is_ok());
  EXPECT_FALSE(fits_memory(need, {.left = of_cgroup(1000 * kMemoryMi), .heap_bytes = heap / 2}).is_ok());
  EXPECT_FALSE(fits_memory(need, {.left = of_cgroup(64 * kMemoryMi)}).is_ok());
}

TEST(HeapBytes, HoldTheSharedBuffersOfTheLargestCellThatFits) {
  const Case shared = memory_case(Collective::broadcast, kMemoryMi, 3, Buffers::shared);
  const Case private_one = memory_case(Collective::reduce, kMemoryMi, 3);
  const Case huge = memory_case(Collective::broadcast, std::int64_t{1} << 45, 3, Buffers::shared);
  const auto heap = [](const std::vector<std::vector<Case>>& cells) {
    return heap_bytes_for(cells, CacheState::hot, of_cgroup(1000 * kMemoryMi));
  };
  EXPECT_EQ(heap({{private_one}}), 0U);
  const std::size_t one = heap({{shared}});
  EXPECT_GE(one, static_cast<std::size_t>(2 * kMemoryMi)) << "of the root";
  EXPECT_EQ(heap({{shared}, {shared, shared, private_one}}), 2 * one);
  EXPECT_EQ(heap({{shared}, {huge}, {shared, huge}}), one) << "what does not fit is skipped";
}

TEST(HeapBytes, OfALimitDoNotTakeTheRoomOfAnotherCell) {
  const auto heap = [](std::int64_t bytes, double most = 1e12) {
    const std::vector<std::vector<Case>> cells{{memory_case(Collective::all_reduce, 100 * kMemoryMi, 2)},
                                               {memory_case(Collective::all_reduce, bytes, 2)}};
    return mebibytes(static_cast<double>(heap_bytes_for(cells, CacheState::hot, of_cgroup(1000 * kMemoryMi), most)));
  };
  EXPECT_NEAR(heap(10 * kMemoryMi), 200, 1) << "400 MiB private, 400 MiB for the limit";
  EXPECT_NEAR(heap(10 * kMemoryMi, 100 * kMemoryMi), 20, 1) << "of the second one, where more takes too long";
  EXPECT_EQ(heap(10 * kMemoryMi, 0), 0);
  EXPECT_NEAR(heap(200 * kMemoryMi), 0, 1) << "800 MiB private: the limit of neither has room beside them";
  EXPECT_NEAR(heap(125 * kMemoryMi), 200, 1)
      << "500 MiB private and 500 MiB for its limit do not fit, with 400 MiB they do";
}

}  // namespace
}  // namespace tutti::harness::measure
