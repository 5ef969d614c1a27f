// SPDX-License-Identifier: Apache-2.0
// Ranks that share no memory: each has memory of its own, and links copy to the others what they are told, later, by a
// seed. Algorithms of channels and of flags run there as they are; what would touch another rank's memory is refused.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "impl/communicator/communicator.h"
#include "impl/execute/reach.h"
#include "impl/transports/link.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

/// What goes wrong on all links of a world.
struct Mishap {
  int lost_publish = -1;   ///< the number of one that never arrives, of each link's, from 0
  int lost_announce = -1;  ///< likewise
  bool fails = false;      ///< links say that the other rank went
};

class MirrorDomain;

/// Copies into the peer's memory what was told, in that order, some of it whenever it is asked to make progress.
class MirrorLink final : public Link {
 public:
  MirrorLink(MirrorDomain& mine, MirrorDomain& theirs, std::uint64_t seed, const Mishap& mishap)
      : mine_(mine), theirs_(theirs), random_(seed), mishap_(mishap) {}

  void publish(std::uint64_t slice, std::size_t bytes) override;
  void release(std::uint64_t count) override;
  void announce(int generation) override;
  bool progress() override {
    if (frames_.empty() || random_() % 3 != 0) return false;
    for (auto n = random_() % 3 + 1; n > 0 && !frames_.empty(); --n) {
      frames_.front()();
      frames_.pop_front();
    }
    return true;
  }
  [[nodiscard]] bool is_drained() const override { return frames_.empty(); }
  [[nodiscard]] const Status& failure() const override { return failure_; }
  void fail(const Status& why) { failure_ = why; }

 private:
  MirrorDomain& mine_;
  MirrorDomain& theirs_;
  std::deque<std::function<void()>> frames_;
  std::mt19937_64 random_;
  const Mishap& mishap_;
  int published_ = 0, announced_ = 0;
  Status failure_;
};

struct FreesPages {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// The whole domain as one rank has it.
class MirrorDomain final : public Domain {
 public:
  MirrorDomain(const DomainShape& shape, std::unique_ptr<std::byte, FreesPages> memory, int rank)
      : Domain(shape, "mirror", memory.get()), memory_(std::move(memory)), rank_(rank) {
    links_.resize(static_cast<std::size_t>(shape.ranks));
  }
  static std::unique_ptr<MirrorDomain> make(const DomainShape& shape, int rank) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes = (domain_bytes(shape) + kPage - 1) / kPage * kPage;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
    std::memset(memory, 0, bytes);
    return std::make_unique<MirrorDomain>(shape, std::unique_ptr<std::byte, FreesPages>(memory), rank);
  }
  [[nodiscard]] int rank() const { return rank_; }
  void connect(MirrorDomain& to, std::uint64_t seed, const Mishap& mishap) {
    auto& link = links_[static_cast<std::size_t>(to.rank_)];
    link = std::make_unique<MirrorLink>(*this, to, seed, mishap);
    if (mishap.fails) link->fail(error(Code::aborted, "rank {} went", to.rank_));
  }
  [[nodiscard]] Link* link(int rank) override { return links_[static_cast<std::size_t>(rank)].get(); }

  Result<void*> alloc_shared(int, std::size_t) override { return error(Code::unavailable, "nothing is shared"); }
  void free_shared(int, void*) override {}
  [[nodiscard]] bool is_shared(int, const void*, std::size_t) const override { return false; }
  Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t) override {
    return error(Code::unavailable, "nothing is shared");
  }
  Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer&, std::size_t) override {
    return error(Code::unavailable, "nothing is shared");
  }

 private:
  std::unique_ptr<std::byte, FreesPages> memory_;
  int rank_;
  std::vector<std::unique_ptr<MirrorLink>> links_;
};

SlotHeader& slot_of(const MirrorDomain& domain, int from, int to, std::uint64_t slice) {
  const DomainShape& shape = domain.shape();
  const std::uint64_t index = (slice - 1) % static_cast<std::uint64_t>(shape.slots);
  return *reinterpret_cast<SlotHeader*>(domain.channel(from, to).slots +
                                        index * (sizeof(SlotHeader) + shape.slot_bytes));
}

void MirrorLink::publish(std::uint64_t slice, std::size_t bytes) {
  if (published_++ == mishap_.lost_publish) return;
  const auto* const from = reinterpret_cast<std::byte*>(&slot_of(mine_, mine_.rank(), theirs_.rank(), slice));
  std::vector<std::byte> copy(from, from + sizeof(SlotHeader) + bytes);
  frames_.emplace_back([this, slice, copy = std::move(copy)] {
    SlotHeader& to = slot_of(theirs_, mine_.rank(), theirs_.rank(), slice);
    constexpr std::size_t kAfterMessage = sizeof to.message;
    std::memcpy(reinterpret_cast<std::byte*>(&to) + kAfterMessage, copy.data() + kAfterMessage,
                copy.size() - kAfterMessage);
    to.message.store(slice, std::memory_order_release);
  });
}

void MirrorLink::release(std::uint64_t count) {
  frames_.emplace_back([this, count] {
    theirs_.channel(theirs_.rank(), mine_.rank()).consumed->store(count, std::memory_order_release);
  });
}

void MirrorLink::announce(int generation) {
  if (announced_++ == mishap_.lost_announce) return;
  const FlagLine& from = mine_.seat(mine_.rank()).lines[generation];
  frames_.emplace_back([this, generation, flag = from.flag.load(), hash = from.hash, payload = from.payload] {
    FlagLine& to = theirs_.seat(mine_.rank()).lines[generation];
    to.payload = payload;
    to.hash = hash;
    to.flag.store(flag, std::memory_order_release);
  });
}

/// Ranks of which none shares memory with another.
class World {
 public:
  explicit World(int ranks, std::uint64_t seed = 1, const Mishap& mishap = {}) : mishap_(mishap), random_(seed) {
    DomainShape shape = default_shape(ranks, 0);
    shape.scratch_bytes = 4096;
    shape.slots = 8;
    shape.slot_bytes = 256;
    shape.pair_slots = 1;
    shape.pair_slot_bytes = 256;
    for (int rank = 0; rank < ranks; ++rank) domains_.push_back(MirrorDomain::make(shape, rank));
    for (auto& one : domains_) {
      for (auto& other : domains_) {
        if (one != other) one->connect(*other, random_(), mishap_);
      }
      const CommunicatorOptions options{.waiting = Waiting::yield, .timeout = seconds(60), .prove_plans = false};
      communicators_.push_back(Communicator::create(*one, one->rank(), options).value());
    }
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(domains_.size()); }
  [[nodiscard]] Communicator& on(int rank) { return *communicators_[static_cast<std::size_t>(rank)]; }

  /// Lets ranks take turns as the seed says; whether all works are done then.
  bool go(std::vector<Work>& works, int turns = 200'000) {
    std::vector<bool> is_done(works.size());
    for (std::size_t left = works.size(); left > 0 && turns > 0; --turns) {
      const auto one = random_() % works.size();
      if (is_done[one]) continue;
      const Result<bool> done = works[one].test();
      EXPECT_TRUE(done.is_ok()) << done.status().message();
      if (!done.is_ok()) return false;
      is_done[one] = done.value();
      left -= done.value() ? 1 : 0;
    }
    return std::ranges::all_of(is_done, std::identity());
  }

 private:
  Mishap mishap_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<MirrorDomain>> domains_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

Schedule schedule_named(Collective collective, const char* algorithm, int ranks) {
  return schedule_of(*find_algorithm(collective, algorithm).value(), {.collective = collective, .ranks = ranks});
}

/// Element i of every rank's result is the sum of what the ranks have there.
class Sums {
 public:
  Sums(int ranks, Count count, int salt) : count_(count), salt_(salt) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::int32_t>& input = inputs_.emplace_back();
      for (Count i = 0; i < count; ++i) input.push_back(element(rank, i));
      outputs_.emplace_back(static_cast<std::size_t>(count), -1);
    }
  }
  [[nodiscard]] Call call(int rank, const Schedule& schedule) {
    const auto r = static_cast<std::size_t>(rank);
    return {.collective = Collective::all_reduce,
            .dtype = Dtype::i32,
            .op = Op::sum,
            .count = count_,
            .input = inputs_[r].data(),
            .output = outputs_[r].data(),
            .schedule = &schedule};
  }
  [[nodiscard]] bool are_right() const {
    for (const auto& output : outputs_) {
      for (Count i = 0; i < count_; ++i) {
        std::int32_t sum = 0;
        for (std::size_t rank = 0; rank < inputs_.size(); ++rank) sum += element(static_cast<int>(rank), i);
        if (output[static_cast<std::size_t>(i)] != sum) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::int32_t element(int rank, Count i) const {
    return static_cast<std::int32_t>((rank + 1) * 10007 + i * 31 + salt_);
  }
  Count count_;
  int salt_;
  std::vector<std::vector<std::int32_t>> inputs_, outputs_;
};

TEST(Links, AlgorithmsOfChannelsAndOfLinesAreRight) {
  struct Row {
    const char* algorithm;
    std::vector<Count> counts;
  };
  // Of 64 elements a slot: in the header, in one slot, in many; what lies in a line has at most 12.
  const std::vector<Row> rows{{"ring", {0, 1, 5, 100, 3000}},
                              {"halving", {1, 5, 100, 3000}},
                              {"recursive_doubling", {1, 5, 100, 3000}},
                              {"one_shot", {1, 12}}};
  for (const int ranks : {2, 3, 4}) {
    for (const Row& row : rows) {
      const Schedule schedule = schedule_named(Collective::all_reduce, row.algorithm, ranks);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        World world(ranks, seed);
        int salt = 0;
        for (const Count count : row.counts) {
          for (int repetition = 0; repetition < 6; ++repetition) {  // more than there are generations
            Sums sums(ranks, count, ++salt);
            std::vector<Work> works;
            for (int rank = 0; rank < ranks; ++rank) {
              auto work = world.on(rank).post(sums.call(rank, schedule));
              ASSERT_TRUE(work.is_ok()) << row.algorithm << ": " << work.status().message();
              works.push_back(std::move(work).value());
            }
            ASSERT_TRUE(world.go(works)) << row.algorithm << " on " << ranks << ", " << count << ", seed " << seed;
            ASSERT_TRUE(sums.are_right()) << row.algorithm << " on " << ranks << ", " << count << ", seed " << seed;
          }
        }
      }
    }
  }
}

TEST(Links, ABarrierOfFlagsWaitsForAllRanks) {
  for (const int ranks : {2, 3, 5}) {
    const Schedule schedule = schedule_named(Collective::barrier, "dissemination", ranks);
    const Call call{.collective = Collective::barrier, .schedule = &schedule};
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      World world(ranks, seed);
      for (int repetition = 0; repetition < 10; ++repetition) {
        const int late = repetition % ranks;
        std::vector<Work> works;
        for (int rank = 0; rank < ranks; ++rank) {
          if (rank != late) works.push_back(world.on(rank).post(call).value());
        }
        for (int look = 0; look < 200; ++look) {
          for (Work& work : works) ASSERT_FALSE(work.test().value()) << "before rank " << late << " came";
        }
        works.push_back(world.on(late).post(call).value());
        ASSERT_TRUE(world.go(works)) << ranks << " ranks, seed " << seed;
      }
    }
  }
}

TEST(Links, BlockingCallsLeaveNothingToldBehind) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", kRanks);
  World world(kRanks);
  std::vector<std::unique_ptr<Sums>> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(std::make_unique<Sums>(kRanks, 500, i));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (auto& one : sums) {
        const Status summed = world.on(rank).run(one->call(rank, ring));
        EXPECT_TRUE(summed.is_ok()) << summed.message();
        const Status met = world.on(rank).run({.collective = Collective::barrier, .schedule = &barrier});
        EXPECT_TRUE(met.is_ok()) << met.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : sums) EXPECT_TRUE(one->are_right());
}

/// Posts on all ranks, and waits on one: how that ends.
Status end_of(World& world, const std::function<Call(int)>& call, milliseconds patience) {
  std::vector<Work> works;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    auto work = world.on(rank).post(call(rank));
    if (!work.is_ok()) return work.status();
    works.push_back(std::move(work).value());
  }
  for (int turn = 0; turn < 20'000; ++turn) {
    for (Work& work : works) {
      if (const auto done = work.test(); !done.is_ok()) return done.status();
    }
  }
  for (Work& work : works) TUTTI_RETURN_IF_ERROR(work.wait(patience));
  return {};
}

TEST(Links, ALostMessageIsSeenAtTheDeadline) {
  constexpr int kRanks = 3;
  const Schedule ring = schedule_named(Collective::all_reduce, "ring", kRanks);
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", kRanks);
  Sums sums(kRanks, 500, 1);
  const auto sum = [&](int rank) { return sums.call(rank, ring); };
  const auto meet = [&](int) { return Call{.collective = Collective::barrier, .schedule = &barrier}; };
  World sound(kRanks);
  EXPECT_TRUE(end_of(sound, sum, milliseconds(20'000)).is_ok());
  EXPECT_TRUE(end_of(sound, meet, milliseconds(20'000)).is_ok());
  World loses_slice(kRanks, 1, {.lost_publish = 2});
  EXPECT_EQ(end_of(loses_slice, sum, milliseconds(50)).code(), Code::timeout);
  World loses_flag(kRanks, 1, {.lost_announce = 0});
  EXPECT_EQ(end_of(loses_flag, meet, milliseconds(50)).code(), Code::timeout);
}

TEST(Links, ALinkThatFailsEndsTheCallAndNamesTheRank) {
  const Schedule barrier = schedule_named(Collective::barrier, "dissemination", 2);
  World world(2, 1, {.fails = true});
  const Status status = world.on(0).run({.collective = Collective::barrier, .schedule = &barrier});
  EXPECT_EQ(status.code(), Code::aborted);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 went"));
}

TEST(Links, WhatTouchesMemoryBehindALinkIsRefused) {
  constexpr int kRanks = 3;
  World world(kRanks);
  const Schedule two_shot = schedule_named(Collective::all_reduce, "two_shot", kRanks);
  Sums sums(kRanks, 500, 1);
  const Status refused = world.on(1).post(sums.call(1, two_shot)).status();
  EXPECT_EQ(refused.code(), Code::unavailable);
  EXPECT_THAT(refused.message(), HasSubstr("rank 1 shares no memory with rank "));
  EXPECT_THAT(refused.message(), HasSubstr("scratch"));
  int value = 0;
  EXPECT_THAT(world.on(0).post_send(&value, 1, Dtype::i32, 2).status().message(), HasSubstr("rank 2"));
  EXPECT_EQ(world.on(0).post_split(0, 0).status().code(), Code::unavailable);
  EXPECT_EQ(world.on(0).post_new_group(std::vector{0, 1}).status().code(), Code::unavailable);
}

}  // namespace
}  // namespace tutti
