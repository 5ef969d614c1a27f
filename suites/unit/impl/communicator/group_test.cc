// SPDX-License-Identifier: Apache-2.0
// Groups: which ranks are in one, under which number, and what becomes of them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "suites/conformance/ranks.h"
#include "suites/unit/impl/communicator/groups.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Group : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Group, testing::Values(Kind::threads, Kind::processes, Kind::blocks, Kind::devices),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

TEST_P(Group, SplitMakesOneForEachColourOrderedByKeyThenRank) {
  on_ranks(GetParam(), 6, [](Communicator& world) {
    const int rank = world.rank();
    // Colours 0 and 1 by parity; the even ones in reverse.
    const auto group = world.split(rank % 2, rank % 2 == 0 ? -rank : 0);
    ASSERT_TRUE(group.is_ok()) << group.status().message();
    const auto members = members_of(*group.value(), rank);
    if (rank % 2 == 0) {
      EXPECT_THAT(members, testing::ElementsAre(4, 2, 0));
      EXPECT_EQ(group.value()->rank(), (4 - rank) / 2);
    } else {
      EXPECT_THAT(members, testing::ElementsAre(1, 3, 5));
      EXPECT_EQ(group.value()->rank(), rank / 2);
    }
    EXPECT_EQ(group.value()->world_rank(group.value()->rank()), rank);
  });
}

TEST_P(Group, ANegativeColourIsNoGroup) {
  on_ranks(GetParam(), 3, [](Communicator& world) {
    const auto group = world.split(world.rank() == 1 ? -1 : 7, 0);
    ASSERT_TRUE(group.is_ok()) << group.status().message();
    EXPECT_EQ(group.value() == nullptr, world.rank() == 1);
    if (group.value() != nullptr) {
      EXPECT_EQ(group.value()->ranks(), 2);
    }
    const auto none = world.split(-1, 0);
    ASSERT_TRUE(none.is_ok());
    EXPECT_EQ(none.value(), nullptr);
  });
}

TEST_P(Group, NewGroupKeepsTheOrderOfItsListAndRootsAreItsRanks) {
  on_ranks(GetParam(), 5, [has_messages = GetParam() != Kind::devices](Communicator& world) {
    const std::array ranks{3, 0, 4};
    const auto made = world.new_group(ranks);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    const bool is_member = world.rank() == 3 || world.rank() == 0 || world.rank() == 4;
    ASSERT_EQ(made.value() != nullptr, is_member);
    if (!is_member) return;
    Communicator& group = *made.value();
    EXPECT_THAT(members_of(group, world.rank()), testing::ElementsAre(3, 0, 4));
    std::int32_t value = world.rank();
    ASSERT_TRUE(group.broadcast(&value, &value, 1, Dtype::i32, 0).is_ok());
    EXPECT_EQ(value, 3) << "root 0 is rank 3 of the world";
    value = world.rank();
    std::int32_t sum = -1;
    ASSERT_TRUE(group.reduce(&value, &sum, 1, Dtype::i32, Op::sum, 2).is_ok());
    EXPECT_EQ(sum, group.rank() == 2 ? 7 : -1);
    if (!has_messages) return;
    if (group.rank() == 0) {
      ASSERT_TRUE(group.send(&value, 1, Dtype::i32, 2).is_ok());
    } else if (group.rank() == 2) {
      ASSERT_TRUE(group.recv(&value, 1, Dtype::i32, 0).is_ok());
      EXPECT_EQ(value, 3) << "peer 0 is rank 3 of the world";
    }
  });
}

TEST_P(Group, TheTutorialsGroupOfTwoSumsToTwo) {
  // torch.distributed's tutorial: all_reduce of ones in new_group([0, 1]).
  on_ranks(GetParam(), 4, [](Communicator& world) {
    const auto group = world.new_group(std::array{0, 1});
    ASSERT_TRUE(group.is_ok());
    float tensor = 1;
    if (group.value() != nullptr) {
      ASSERT_TRUE(group.value()->all_reduce(&tensor, &tensor, 1, Dtype::f32, Op::sum).is_ok());
    }
    EXPECT_EQ(tensor, world.rank() < 2 ? 2 : 1);
  });
}

TEST_P(Group, AGroupOfAGroupNamesTheRanksOfTheGroup) {
  on_ranks(GetParam(), 6, [](Communicator& world) {
    const int rank = world.rank();
    auto half = world.split(rank / 3, -rank);  // {2, 1, 0} and {5, 4, 3}
    ASSERT_TRUE(half.is_ok());
    const auto pair = half.value()->new_group(std::array{2, 0});
    ASSERT_TRUE(pair.is_ok());
    half.value().reset();  // the pair outlives it
    if (rank % 3 == 1) {
      EXPECT_EQ(pair.value(), nullptr);
      return;
    }
    EXPECT_THAT(members_of(*pair.value(), rank), testing::ElementsAre(rank / 3 * 3, rank / 3 * 3 + 2));
    EXPECT_EQ(pair.value()->world_rank(1), rank / 3 * 3 + 2);
  });
}

TEST_P(Group, OverlappingGroupsAreUsedAtOnce) {
  on_ranks(GetParam(), 4, [](Communicator& world) {
    // Every rank is in two of the four pairs of a ring, and each waits for them in another order. So around the ring
    // each waits for a rank that waits for another. No operation is complete without its peer's taking part again after
    // it was posted, so a wait for one must move the others.
    constexpr int kRounds = 6;
    constexpr Count kCount = 30000;
    const auto groups = pairs_of_a_ring(world);
    ASSERT_EQ(groups.size(), 2U);
    for (int round = 0; round < kRounds; ++round)
      ASSERT_NO_FATAL_FAILURE(sum_in_all_at_once(world, groups, kCount, round));
  });
}

TEST_P(Group, SharedBuffersOfTheWorldAreSharedInItsGroups) {
  if (GetParam() == Kind::devices) GTEST_SKIP() << "ranks on devices of several processes have no shared buffers";
  on_ranks(GetParam(), 4, [](Communicator& world) {
    constexpr Count kCount = 1000;
    const auto group = world.split(world.rank() / 2, -world.rank());
    ASSERT_TRUE(group.is_ok());
    auto* const of_world = static_cast<float*>(world.alloc_shared(kCount * sizeof(float)).value());
    auto* const of_group = static_cast<float*>(group.value()->alloc_shared(kCount * sizeof(float)).value());
    std::fill(of_world, of_world + kCount, static_cast<float>(world.rank()));
    ASSERT_TRUE(group.value()->all_reduce(of_world, of_group, kCount, Dtype::f32, Op::sum, Buffers::shared).is_ok());
    EXPECT_THAT(std::vector<float>(of_group, of_group + kCount), testing::Each(world.rank() / 2 == 0 ? 1.0F : 5.0F));
    world.free_shared(of_group);
    group.value()->free_shared(of_world);
  });
}

TEST_P(Group, MadeAndDestroyedManyTimesLeavesNothing) {
  on_ranks(GetParam(), 3, [](Communicator& world) {
    const auto cycle = [&] {
      const auto group = world.split(world.rank() == 2 ? 1 : 0, 0);
      ASSERT_TRUE(group.is_ok()) << group.status().message();
      ASSERT_TRUE(group.value()->barrier().is_ok());
    };
    // Where ranks are threads, they look in turn: a look opens a descriptor itself.
    const auto look = [&](const auto& at) {
      for (int rank = 0; rank < world.ranks(); ++rank) {
        ASSERT_TRUE(world.barrier().is_ok());
        if (rank == world.rank()) at();
      }
      ASSERT_TRUE(world.barrier().is_ok());
    };
    for (int i = 0; i < 5; ++i) cycle();
    std::ptrdiff_t descriptors_before = 0, mappings_before = 0;
    look([&] {
      descriptors_before = open_descriptors();
      mappings_before = mappings();
    });
    for (int i = 0; i < 200; ++i) cycle();
    look([&] {
      EXPECT_EQ(open_descriptors(), descriptors_before);
      EXPECT_LE(mappings(), mappings_before + 50)
          << "200 groups of a mapping each are gone; an allocator may keep some";
    });
  });
}

TEST_P(Group, ListsThatDifferAreAMismatchOnAllRanksAndTheWorldGoesOn) {
  on_ranks(GetParam(), 3, [](Communicator& world) {
    const auto group = world.rank() == 2 ? world.new_group(std::array{0, 2}) : world.new_group(std::array{0, 1});
    EXPECT_EQ(group.status().code(), Code::mismatch) << group.status().message();
    EXPECT_THAT(group.status().message(), testing::HasSubstr("rank 2"));
    EXPECT_TRUE(world.barrier().is_ok());
  });
}

TEST_P(Group, ListsThatAreNoneAreRefusedAtOnce) {
  on_ranks(GetParam(), 2, [](Communicator& world) {
    EXPECT_EQ(world.new_group(std::array{0, 2}).status().message(), "a group of rank 2, which is out of range: 0 to 1");
    EXPECT_EQ(world.new_group(std::array{1, 1}).status().message(), "a group with rank 1 twice");
    EXPECT_TRUE(world.barrier().is_ok());
  });
}

TEST_P(Group, ErrorsSayTheRanksOfTheGroupAndOfTheWorld) {
  const bool has_blocks = GetParam() == Kind::blocks;
  const std::string waits = has_blocks ? "waits for rank 1 of the group (rank 1 of the world) to call it"
                            : GetParam() == Kind::devices ? "waits for phase 1 of rank 1 of the group (rank 1 of the "
                                                            "world), lane 0, rank 0 of the group (rank 2 of the world) "
                                                            "on device 0, rank 1 of the group (rank 1 of the world) on "
                                                            "device 1"
                                                          : "waits for phase 1 of rank 1 of the group (rank 1 of the "
                                                            "world)";
  on_ranks(GetParam(), 3, [has_blocks, is_told_at_once = GetParam() == Kind::devices, waits](Communicator& world) {
    const std::string told =
        "rank 0 of the group (rank 2 of the world) failed: timeout: rank 0 of the group (rank 2 of the world) gave "
        "up: ";
    const auto group = world.new_group(std::array{2, 1});
    ASSERT_TRUE(group.is_ok());
    if (world.rank() == 2) {
      Work work = group.value()->post({.collective = Collective::barrier}).value();
      const Status status = work.wait(milliseconds(20));
      EXPECT_EQ(status.code(), Code::timeout);
      EXPECT_THAT(status.message(), testing::StartsWith("rank 0 of the group (rank 2 of the world) gave up: "));
      EXPECT_THAT(status.message(),
                  testing::HasSubstr(waits + "\n  rank 1 of the group (rank 1 of the world) has not called "
                                             "operation 1: it has made no call\n"));
    }
    ASSERT_TRUE(world.barrier().is_ok()) << "the world goes on";
    if (world.rank() == 1 && has_blocks) {
      EXPECT_THAT(group.value()->barrier().message(),
                  testing::StartsWith("rank 0 of the group (rank 2 of the world) gave up: "));
    } else if (world.rank() == 1 && is_told_at_once) {
      EXPECT_THAT(group.value()->barrier().message(), testing::StartsWith(told));
    } else if (world.rank() == 1) {
      EXPECT_TRUE(group.value()->barrier().is_ok()) << "which rank 2 had announced";
      EXPECT_THAT(group.value()->barrier().message(), testing::StartsWith(told));
    }
    ASSERT_TRUE(world.barrier().is_ok());
  });
}

TEST_P(Group, WhileOneIsFormedTheCommunicatorTakesNoOtherCollective) {
  on_ranks(GetParam(), 2, [](Communicator& world) {
    auto formation = world.post_split(0, 0);
    ASSERT_TRUE(formation.is_ok());
    EXPECT_THAT(world.barrier().message(), testing::StartsWith("barrier while a group is being formed"));
    ASSERT_TRUE(formation.value()->wait(seconds(10)).is_ok());
    EXPECT_EQ(formation.value()->take()->ranks(), 2);
    EXPECT_TRUE(world.barrier().is_ok());
  });
}

TEST(GroupAsTasks, IsFormedByPolling) {
  constexpr int kRanks = 9;
  const auto domain = local::open_domain(local::shape_for(kRanks)).value();
  std::vector<std::unique_ptr<Communicator>> worlds, groups;
  std::vector<std::unique_ptr<GroupFormation>> formations;
  for (int rank = 0; rank < kRanks; ++rank) {
    worlds.push_back(Communicator::create(*domain, rank, {.prove_plans = false}).value());
    formations.push_back(worlds.back()->post_split(rank % 3, 0).value());
  }
  const auto is_pending = [](auto& formation) { return !formation->test().value(); };
  while (std::ranges::count_if(formations, is_pending) > 0) continue;
  std::vector<std::int32_t> sums(kRanks);
  std::vector<std::int32_t> inputs(kRanks);
  std::vector<Work> works;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    groups.push_back(formations[rank]->take());
    inputs[rank] = static_cast<std::int32_t>(rank);
    works.push_back(groups.back()
                        ->post({.collective = Collective::all_reduce,
                                .dtype = Dtype::i32,
                                .op = Op::sum,
                                .count = 1,
                                .input = &inputs[rank],
                                .output = &sums[rank]})
                        .value());
  }
  const auto is_waiting = [](Work& work) { return !work.test().value(); };
  while (std::ranges::count_if(works, is_waiting) > 0) continue;
  EXPECT_THAT(sums, testing::ElementsAre(9, 12, 15, 9, 12, 15, 9, 12, 15));
}

/// A domain without memory for groups.
class Poor final : public Domain {
 public:
  explicit Poor(Domain& rich, const DomainShape& shape, std::byte* base) : Domain(shape, "poor", base), rich_(rich) {}
  Result<void*> alloc_shared(int rank, std::size_t bytes) override { return rich_.alloc_shared(rank, bytes); }
  void free_shared(int rank, void* pointer) override { rich_.free_shared(rank, pointer); }
  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override {
    return rich_.is_shared(rank, pointer, bytes);
  }
  Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override {
    return error(Code::resource, "cannot allocate {} bytes", bytes);
  }
  Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer, std::size_t bytes) override {
    return rich_.take_group_memory(offer, bytes);
  }

 private:
  Domain& rich_;
};

TEST(GroupMemory, LackOfItIsAnErrorWithNumbersOnAllRanksAndTheWorldGoesOn) {
  const DomainShape shape = local::shape_for(3);
  const auto domain = local::open_domain(shape).value();
  auto* const base = reinterpret_cast<std::byte*>(&domain->abort_line());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Poor poor(*domain, shape, base);
      Domain& mine = rank == 1 ? static_cast<Domain&>(poor) : *domain;
      const auto world = Communicator::create(mine, rank, {.waiting = Waiting::yield}).value();
      const auto group = world->split(rank == 0 ? 0 : 1, 0);
      EXPECT_EQ(group.status().code(), Code::resource);
      EXPECT_THAT(group.status().message(), testing::MatchesRegex("no group: rank 1: cannot allocate [0-9]+ bytes"))
          << rank;
      EXPECT_TRUE(world->barrier().is_ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tutti
