// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that are on several hosts, over links that deliver by a seed and over TCP: members of one host, of
// several, one alone; what they are called, what becomes of them, and what they leave.
#include <algorithm>
#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/fake/domain.h"
#include "impl/transports/tcp/domain.h"
#include "suites/unit/impl/communicator/groups.h"
#include "suites/unit/impl/communicator/hosts.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// Not in blocks: ranks 0, 2 and 5 are on host 0, ranks 1 and 3 on host 1, rank 4 is alone on host 2.
const std::vector<int> kHostOf{0, 1, 0, 1, 2, 0};
constexpr int kMembers = 6;  // of the world

enum class Over { fake, tcp };

class GroupsOnHosts : public testing::TestWithParam<Over> {
 protected:
  static RanksOn world(std::chrono::nanoseconds timeout = 20s) {
    const DomainShape shape = shape_across_hosts(kMembers, 3, 0);
    if (GetParam() == Over::tcp) return RanksOn(tcp::open_in_process(shape, Hosts(kHostOf)).value(), timeout);
    return RanksOn(fake::open_domain(shape, Hosts(kHostOf), {.seed = 5}).value(), timeout);
  }
  /// `act` of each rank of a new world, in a thread of its own.
  static void on_ranks(const std::function<void(Communicator& world)>& act) {
    RanksOn ranks = world();
    ranks.in_threads([&](int rank) { act(ranks.on(rank)); });
  }
};
INSTANTIATE_TEST_SUITE_P(Links, GroupsOnHosts, testing::Values(Over::fake, Over::tcp),
                         [](const auto& over) { return over.param == Over::tcp ? "tcp" : "fake"; });

/// Sums of all lengths, and a message from each member to the next one.
void use(Communicator& group, int world_rank) {
  for (const Count count : {1, 5000, 200'000}) {
    std::vector<std::int32_t> in(static_cast<std::size_t>(count), world_rank + 1), out(in.size(), -1);
    const Status done = group.all_reduce(in.data(), out.data(), count, Dtype::i32, Op::sum);
    ASSERT_TRUE(done.is_ok()) << done.message();
    std::int32_t sum = 0;
    for (int rank = 0; rank < group.ranks(); ++rank) sum += group.world_rank(rank) + 1;
    ASSERT_EQ(std::ranges::count(out, sum), count);
  }
  ASSERT_TRUE(group.barrier().is_ok());
  const int next = (group.rank() + 1) % group.ranks(), last = (group.rank() + group.ranks() - 1) % group.ranks();
  std::vector<std::int32_t> sent(70'000, world_rank), received(70'000, -1);
  Work receive = group.post_recv(received.data(), 70'000, Dtype::i32, last).value();
  ASSERT_TRUE(group.send(sent.data(), 70'000, Dtype::i32, next).is_ok());
  ASSERT_TRUE(receive.wait().is_ok());
  ASSERT_EQ(std::ranges::count(received, group.world_rank(last)), 70'000);
}

TEST_P(GroupsOnHosts, SplitMakesOneForEachColourOrderedByKeyThenRank) {
  on_ranks([](Communicator& world) {
    const int rank = world.rank();
    const auto group = world.split(rank % 2, rank % 2 == 0 ? -rank : 0);  // {4, 2, 0} and {1, 3, 5}
    ASSERT_TRUE(group.is_ok()) << group.status().message();
    EXPECT_THAT(members_of(*group.value(), rank), rank % 2 == 0 ? ElementsAre(4, 2, 0) : ElementsAre(1, 3, 5));
    EXPECT_EQ(group.value()->world_rank(group.value()->rank()), rank);
    ASSERT_NE(group.value()->hosts(), nullptr);
    EXPECT_EQ(group.value()->hosts()->count(), 2);
    EXPECT_EQ(group.value()->hosts()->share_memory(0, 1), rank % 2 == 1);
    EXPECT_EQ(group.value()->hosts()->share_memory(1, 2), rank % 2 == 0);
    use(*group.value(), rank);
  });
}

TEST_P(GroupsOnHosts, MembersOfOneHostShareMemory) {
  on_ranks([](Communicator& world) {
    const int rank = world.rank();
    const auto made = world.split(world.hosts()->host_of(rank), 0);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    Communicator& group = *made.value();
    EXPECT_EQ(group.hosts(), nullptr);
    EXPECT_EQ(group.ranks(), rank == 4 ? 1 : rank % 2 == 1 && rank != 5 ? 2 : 3);
    use(group, rank);
    // What touches the buffers of others is refused between hosts.
    const Schedule direct = schedule_named(Collective::all_reduce, "two_shot", group.ranks());
    Sums sums(group.ranks(), 40'000, 3);
    const Status done = group.run(sums.call(group.rank(), &direct));
    EXPECT_TRUE(done.is_ok()) << done.message();
    EXPECT_TRUE(sums.is_right(group.rank()));
  });
}

TEST_P(GroupsOnHosts, NewGroupKeepsItsOrderAndTheOthersHaveNone) {
  on_ranks([](Communicator& world) {
    const std::array ranks{3, 4, 0, 1};
    const auto made = world.new_group(ranks);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    ASSERT_EQ(made.value() != nullptr, std::ranges::count(ranks, world.rank()) > 0);
    if (made.value() == nullptr) return;
    EXPECT_THAT(members_of(*made.value(), world.rank()), ElementsAre(3, 4, 0, 1));
    std::int32_t value = world.rank();
    ASSERT_TRUE(made.value()->broadcast(&value, &value, 1, Dtype::i32, 1).is_ok());
    EXPECT_EQ(value, 4) << "root 1 is rank 4 of the world";
    use(*made.value(), world.rank());
  });
}

TEST_P(GroupsOnHosts, AGroupOfAGroupOutlivesIt) {
  on_ranks([](Communicator& world) {
    const int rank = world.rank();
    auto half = world.split(rank / 3, -rank);  // {2, 1, 0} and {5, 4, 3}
    ASSERT_TRUE(half.is_ok()) << half.status().message();
    const auto pair = half.value()->new_group(std::array{2, 0});
    ASSERT_TRUE(pair.is_ok()) << pair.status().message();
    half.value().reset();
    EXPECT_EQ(pair.value() == nullptr, rank % 3 == 1);
    if (rank % 3 == 1) return;
    EXPECT_THAT(members_of(*pair.value(), rank), ElementsAre(rank / 3 * 3, rank / 3 * 3 + 2));
    EXPECT_EQ(pair.value()->hosts() == nullptr, rank / 3 == 0) << "ranks 0 and 2 share memory, 3 and 5 do not";
    use(*pair.value(), rank);
  });
}

TEST_P(GroupsOnHosts, AreFormedAndUsedWhileOthersHaveOperationsInFlight) {
  on_ranks([](Communicator& world) {
    constexpr Count kCount = 30'000;
    const int rank = world.rank();
    // A long message is under way over every pair of the ring, in the world and in each pair's group.
    std::vector<std::int32_t> sent(1'000'000, rank), received(sent.size(), -1);
    Work receive = world.post_recv(received.data(), 1'000'000, Dtype::i32, (rank + kMembers - 1) % kMembers).value();
    Work send = world.post_send(sent.data(), 1'000'000, Dtype::i32, (rank + 1) % kMembers).value();
    const auto groups = pairs_of_a_ring(world);
    ASSERT_EQ(groups.size(), 2U);
    for (int round = 0; round < 4; ++round) ASSERT_NO_FATAL_FAILURE(sum_in_all_at_once(world, groups, kCount, round));
    ASSERT_TRUE(receive.wait().is_ok());
    ASSERT_TRUE(send.wait().is_ok());
    ASSERT_EQ(std::ranges::count(received, (rank + kMembers - 1) % kMembers), 1'000'000);
  });
}

// A connection is made by whoever speaks first, and needs the other rank, which may be waiting in the world.
TEST_P(GroupsOnHosts, AMessageOfAGroupLeavesThoughItsPeerWaitsInTheWorld) {
  on_ranks([](Communicator& world) {
    const auto group = world.new_group(std::array{0, 1});
    ASSERT_TRUE(group.is_ok()) << group.status().message();
    std::int32_t value = 7;
    if (world.rank() == 0) {
      const Status sent = group.value()->send(&value, 1, Dtype::i32, 1);
      ASSERT_TRUE(sent.is_ok()) << sent.message();
    }
    ASSERT_TRUE(world.barrier().is_ok());  // not before rank 0 has sent
    if (world.rank() != 1) return;
    value = 0;
    ASSERT_TRUE(group.value()->recv(&value, 1, Dtype::i32, 0).is_ok());
    EXPECT_EQ(value, 7);
  });
}

TEST_P(GroupsOnHosts, ErrorsSayTheRanksOfTheGroupAndOfTheWorldWhichGoesOn) {
  on_ranks([](Communicator& world) {
    const auto group = world.new_group(std::array{4, 1});
    ASSERT_TRUE(group.is_ok()) << group.status().message();
    if (world.rank() == 4) {
      Work work = group.value()->post({.collective = Collective::barrier}).value();
      const Status status = work.wait(50ms);
      EXPECT_EQ(status.code(), Code::timeout);
      EXPECT_THAT(status.message(),
                  AllOf(StartsWith("rank 0 of the group (rank 4 on host 2 of the world) gave up: "),
                        HasSubstr("waits for phase 1 of rank 1 of the group (rank 1 on host 1 of the world)")));
    }
    ASSERT_TRUE(world.barrier().is_ok()) << "the world goes on";
    if (world.rank() == 1) {
      const Status first = group.value()->barrier();  // which rank 4 had announced
      const Status second = first.is_ok() ? group.value()->barrier() : first;
      EXPECT_THAT(second.message(),
                  AllOf(StartsWith("rank 0 of the group (rank 4 on host 2 of the world) failed: timeout: "),
                        HasSubstr("waits for phase 1 of rank 1 of the group (rank 1 on host 1 of the world)")));
    }
    ASSERT_TRUE(world.barrier().is_ok());
  });
}

TEST_P(GroupsOnHosts, ListsThatDifferAreAMismatchOnAllRanksAndTheWorldGoesOn) {
  on_ranks([](Communicator& world) {
    const auto group = world.rank() == 2 ? world.new_group(std::array{0, 4}) : world.new_group(std::array{0, 1});
    EXPECT_EQ(group.status().code(), Code::mismatch) << group.status().message();
    EXPECT_THAT(group.status().message(), HasSubstr("rank 2"));
    EXPECT_TRUE(world.barrier().is_ok());
  });
}

TEST_P(GroupsOnHosts, MadeAndDestroyedAThousandTimesLeaveNothing) {
  RanksOn ranks = world();
  const auto cycle = [&](int times) {
    ranks.in_threads([&](int rank) {
      for (int i = 0; i < times; ++i) {
        const auto group = ranks.on(rank).split(rank == 4 ? 1 : 0, 0);
        ASSERT_TRUE(group.is_ok()) << group.status().message();
        ASSERT_TRUE(group.value()->barrier().is_ok());
      }
    });
  };
  cycle(5);  // the world's own connections stay
  const std::ptrdiff_t descriptors_before = open_descriptors();
  const std::ptrdiff_t mappings_before = mappings();
  cycle(1000);
  EXPECT_EQ(open_descriptors(), descriptors_before);
  EXPECT_LE(mappings(), mappings_before + 50) << "5000 mappings are gone; an allocator may keep some";
}

// What a line says of an operation is overwritten when its generation comes again. Nothing but the fence (Engine::
// put_fence) keeps rank 1, which waits for nobody meanwhile, from doing so before rank 0 has looked.
TEST(FencesBetweenHosts, ALineIsNotWrittenAnewBeforeItWasHeard) {
  for (const auto& [algorithm, messages] : {std::pair("one_shot", 3), std::pair("one_shot", 7)}) {
    RanksOn world(tcp::open_in_process(shape_across_hosts(2, 2, 0), Hosts::in_blocks(2, 2)).value());
    const Schedule schedule = schedule_named(Collective::all_reduce, algorithm, 2);
    const Schedule barrier = schedule_named(Collective::barrier, "dissemination", 2);
    Sums sums(2, 5, 1);
    std::array<std::int32_t, 2> values{};
    std::vector<Work> works;
    const auto post_all = [&](int rank) {
      std::vector<Call> calls{{.collective = Collective::barrier, .schedule = &barrier}};
      for (int i = 0; i < messages; ++i) {
        std::int32_t* const value = &values[static_cast<std::size_t>(rank)];
        calls.push_back({.collective = Collective::broadcast,
                         .dtype = Dtype::i32,
                         .root = 1,
                         .count = 1,
                         .input = value,
                         .output = value,
                         .is_in_place = true});
      }
      calls.push_back(sums.call(rank, &schedule));
      for (const Call& call : calls) {
        const auto work = world.on(rank).post(call);
        ASSERT_TRUE(work.is_ok()) << work.status().message();
        works.push_back(work.value());
        for (int look = 0; look < 2000 && rank == 1; ++look) (void)works.back().test();
        if (rank == 0) break;
      }
    };
    // A first message makes the connection.
    std::int32_t word = 0;
    std::thread other([&] { EXPECT_TRUE(world.on(1).recv(&word, 1, Dtype::i32, 0).is_ok()); });
    EXPECT_TRUE(world.on(0).send(&word, 1, Dtype::i32, 1).is_ok());
    other.join();
    post_all(0);  // its barrier only
    post_all(1);
    for (int i = 0; i < messages; ++i) {
      works.push_back(world.on(0)
                          .post({.collective = Collective::broadcast,
                                 .dtype = Dtype::i32,
                                 .root = 1,
                                 .count = 1,
                                 .input = &values[0],
                                 .output = &values[0],
                                 .is_in_place = true})
                          .value());
    }
    works.push_back(world.on(0).post(sums.call(0, &schedule)).value());
    ASSERT_TRUE(world.go(works, 1));
    EXPECT_TRUE(sums.are_right());
  }
}

}  // namespace
}  // namespace tutti
