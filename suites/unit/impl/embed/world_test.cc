// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <future>
#include <numeric>
#include <sys/mman.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/embed/ranks.h"

namespace tutti::embed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Call sum_of(const std::vector<float>& input, std::vector<float>& output) {
  return {.collective = Collective::all_reduce,
          .dtype = Dtype::f32,
          .op = Op::sum,
          .count = static_cast<Count>(input.size()),
          .input = input.data(),
          .output = output.data()};
}

/// An all_reduce of `count` ones, waited for.
Status add_ones(World& world, std::size_t count) {
  const std::vector<float> input(count, 1.0F);
  std::vector<float> output(count);
  TUTTI_ASSIGN_OR_RETURN(const auto operation, world.post(sum_of(input, output)));
  TUTTI_RETURN_IF_ERROR(operation->wait());
  for (const float each : output) {
    if (each != static_cast<float>(world.ranks())) return error(Code::mismatch, "{} is not {}", each, world.ranks());
  }
  return {};
}

TEST(World, RanksThatMeetOverAnExchangeReduce) {
  for (const int ranks : {1, 2, 3, 5}) {
    as_threads(ranks, [](World& world) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
        const Status status = add_ones(world, count);
        EXPECT_TRUE(status.is_ok()) << status.message();
      }
    });
  }
}

TEST(World, ProcessesReduce) {
  Processes processes(3, [](const Exchange& exchange, int rank) -> std::string {
    const auto world = World::join(exchange, rank, 3);
    if (!world.is_ok()) return world.status().message();
    for (int i = 0; i < 100; ++i) {
      const Status status = add_ones(*world.value(), 10);
      if (!status.is_ok()) return status.message();
    }
    return add_ones(*world.value(), 1'000'000).message();
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(processes.said_by(rank), "");
}

TEST(World, ManyOperationsAreUnderWayAndWaitedForInAnyOrder) {
  as_threads(2, [](World& world) {
    constexpr std::size_t kCount = 50;
    std::vector<std::vector<float>> inputs, outputs;
    std::vector<std::shared_ptr<Operation>> operations;
    for (std::size_t i = 0; i < kCount; ++i) {
      inputs.emplace_back(i * 100 + 1, static_cast<float>(i));
      outputs.emplace_back(inputs.back().size());
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      auto posted = world.post(sum_of(inputs[i], outputs[i]));
      ASSERT_TRUE(posted.is_ok());
      operations.push_back(posted.value());
    }
    for (std::size_t i = kCount; i-- > 0;) {
      EXPECT_TRUE(operations[i]->wait().is_ok());
      EXPECT_EQ(outputs[i].back(), 2 * static_cast<float>(i));
    }
  });
}

TEST(World, AnOperationOfSeveralStepsHoldsBackThoseBehindIt) {
  as_threads(2, [](World& world) {
    // The steps of a rank that comes late follow each other at once, those of the other one do not.
    if (world.rank() == 1) std::this_thread::sleep_for(milliseconds(50));
    const std::vector<float> ones(10, 1.0F), twos(1000, 2.0F);
    std::vector<float> steps(10), behind(1000);
    int step = 0;
    const auto first = world.post([&](Communicator& communicator, std::vector<Work>& works) -> Result<bool> {
      TUTTI_ASSIGN_OR_RETURN(const Work work, communicator.post(sum_of(ones, steps)));
      works.push_back(work);
      return ++step == 3;
    });
    ASSERT_TRUE(first.is_ok()) << first.status().message();
    const auto second = world.post(sum_of(twos, behind));
    ASSERT_TRUE(second.is_ok()) << second.status().message();
    const Status status = second.value()->wait();
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(first.value()->wait().is_ok());
    EXPECT_EQ(step, 3);
    EXPECT_EQ(steps.back(), 2.0F);
    EXPECT_EQ(behind.back(), 4.0F);
  });
}

TEST(World, AnOperationGoesOnWhileNobodyWaits) {
  as_threads(2, [](World& world) {
    const std::vector<float> input(1'000'000, 1.0F);
    std::vector<float> output(input.size());
    const auto operation = world.post(sum_of(input, output));
    ASSERT_TRUE(operation.is_ok());
    for (int i = 0; i < 2000 && !operation.value()->is_done(); ++i) std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(operation.value()->is_done());
    EXPECT_EQ(output.back(), 2.0F);
  });
}

TEST(World, TheEndIsToldOnceWithoutALock) {
  as_threads(2, [](World& world) {
    const std::vector<float> input(10, 1.0F);
    std::vector<float> output(input.size());
    std::atomic<int> ends{0};
    const auto operation = world.post(sum_of(input, output), {.at_end = [&](const Status& status) {
                                        ends += status.is_ok() ? 1 : 100;
                                        EXPECT_EQ(world.ranks(), 2);
                                      }});
    ASSERT_TRUE(operation.is_ok());
    operation.value()->attend();
    EXPECT_TRUE(operation.value()->wait().is_ok());
    EXPECT_EQ(ends.load(), 1);
  });
}

// As torch's PowerSGD waits for futures in callbacks of others.
TEST(World, WhatIsCalledInTheEndMayWaitForAnotherOperation) {
  for (const bool is_attended_there : {true, false}) {
    as_threads(2, [=](World& world) {
      const std::vector<float> input(1'000'000, 1.0F);
      std::vector<float> first(input.size()), second(input.size());
      std::promise<void> second_ends, first_ends;
      const auto post_second = [&] {
        const auto posted =
            world.post(sum_of(input, second), {.at_end = [&](const Status&) { second_ends.set_value(); }});
        ASSERT_TRUE(posted.is_ok());
        posted.value()->attend();
      };
      const auto operation = world.post(sum_of(input, first), {.at_end = [&](const Status&) {
                                          if (is_attended_there) post_second();
                                          const auto ended =
                                              second_ends.get_future().wait_for(std::chrono::seconds(10));
                                          EXPECT_EQ(ended, std::future_status::ready);
                                          first_ends.set_value();
                                        }});
      ASSERT_TRUE(operation.is_ok());
      if (!is_attended_there) post_second();
      operation.value()->attend();
      EXPECT_EQ(first_ends.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
      EXPECT_EQ(second.back(), 2.0F);
    });
  }
}

TEST(World, AWaitWhoseTimeIsOverEndsNothing) {
  as_threads(2, [](World& world) {
    if (world.rank() == 1) std::this_thread::sleep_for(milliseconds(200));
    const std::vector<float> input(10, 1.0F);
    std::vector<float> output(input.size());
    const auto operation = world.post(sum_of(input, output));
    ASSERT_TRUE(operation.is_ok());
    if (world.rank() == 0) {
      EXPECT_FALSE(operation.value()->wait_for(milliseconds(10)));
    }
    EXPECT_TRUE(operation.value()->wait().is_ok());
  });
}

TEST(World, WhoIsLateIsNamedAtTheDeadline) {
  as_threads(2, [](World& world) {
    const std::vector<float> input(10, 1.0F);
    std::vector<float> output(input.size());
    if (world.rank() == 1) return std::this_thread::sleep_for(milliseconds(600));
    const auto operation = world.post(sum_of(input, output), {.timeout = milliseconds(200)});
    ASSERT_TRUE(operation.is_ok());
    const Status status = operation.value()->wait();
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
  });
}

TEST(World, RanksThatDoNotComeAreNamed) {
  Map map;
  WorldOptions options{.timeout = milliseconds(300)};
  std::thread late([&] {
    const auto world = World::join(map.exchange(), 2, 4, options);
    EXPECT_THAT(world.status().message(), HasSubstr("ranks 1, 3 of 4 did not come within 0.3 s"));
  });
  const auto world = World::join(map.exchange(), 0, 4, options);
  late.join();
  EXPECT_EQ(world.status().code(), Code::timeout);
  EXPECT_THAT(world.status().message(), HasSubstr("ranks 1, 3 of 4 did not come within 0.3 s"));
}

TEST(World, ARankOutOfRangeIsRefused) {
  Map map;
  EXPECT_THAT(World::join(map.exchange(), 2, 2).status().message(), HasSubstr("between 0 and 1"));
  EXPECT_EQ(World::join(map.exchange(), 0, 0).status().code(), Code::invalid_argument);
}

TEST(World, CallsThatDifferAreToldOnAllRanks) {
  Processes processes(2, [](const Exchange& exchange, int rank) -> std::string {
    const auto world = World::join(exchange, rank, 2);
    if (!world.is_ok()) return world.status().message();
    return add_ones(*world.value(), rank == 0 ? 10 : 15).message();
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = processes.said_by(rank);
    EXPECT_THAT(said, AllOf(HasSubstr("10"), HasSubstr("15"))) << "rank " << rank;
  }
}

TEST(World, TheDeathOfARankIsToldWithItsPid) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{16'000'000}}) {
    Processes processes(3, [count](const Exchange& exchange, int rank) -> std::string {
      const auto world = World::join(exchange, rank, 3);
      if (!world.is_ok()) return world.status().message();
      for (int i = 0; i < 1000; ++i) {
        if (i == 3 && rank == 1) ::kill(::getpid(), SIGKILL);
        const Status status = add_ones(*world.value(), count);
        if (!status.is_ok()) return status.message();
      }
      return "no error";
    });
    const std::string expected = fmt::format("pid {}", processes.pid_of(1));
    EXPECT_EQ(processes.said_by(1), "killed");
    for (const int rank : {0, 2}) EXPECT_THAT(processes.said_by(rank), AllOf(HasSubstr("rank 1"), HasSubstr(expected)));
  }
}

TEST(World, ARankThatHasLeftIsToldToWhoeverWaitsForIt) {
  as_threads(2, [](World& world) {
    EXPECT_TRUE(add_ones(world, 4).is_ok());
    if (world.rank() == 1) return world.leave();
    const Status status = add_ones(world, 4);
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
  });
}

TEST(World, AfterLeavingThereAreNoCalls) {
  as_threads(2, [](World& world) {
    EXPECT_TRUE(add_ones(world, 4).is_ok());
    world.leave();
    EXPECT_THAT(add_ones(world, 4).message(), HasSubstr("has left this group"));
  });
}

TEST(World, TheReasonOfAnAbortReachesAllRanks) {
  as_threads(3, [](World& world) {
    EXPECT_TRUE(add_ones(world, 4).is_ok());
    if (world.rank() == 2) return world.abort("the disk is full");
    EXPECT_THAT(add_ones(world, 4).message(), AllOf(HasSubstr("rank 2"), HasSubstr("the disk is full")));
  });
}

TEST(World, AForkedChildLetsGoAndIsNoRank) {
  Processes processes(2, [](const Exchange& exchange, int rank) -> std::string {
    auto world = World::join(exchange, rank, 2);
    if (!world.is_ok()) return world.status().message();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_refused =
          world.value()->post(Call{.collective = Collective::barrier}).status().code() == Code::invalid_argument;
      world.value().reset();
      ::_exit(is_refused ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    if (ended != 0) return "the child has not been refused";
    return add_ones(*world.value(), 1000).message();
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(processes.said_by(rank), "");
}

TEST(World, AThousandOneAfterTheOtherLeaveNothing) {
  const auto count_of = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  as_threads(1, [](World& world) { EXPECT_TRUE(add_ones(world, 4).is_ok()); });
  const auto before = count_of("/proc/self/fd");
  for (int i = 0; i < 200; ++i) {
    as_threads(2, [](World& world) { EXPECT_TRUE(add_ones(world, 4).is_ok()); });
  }
  EXPECT_EQ(count_of("/proc/self/fd"), before);
  // What has no descriptor and no mapping is no more.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_THAT(line, Not(HasSubstr("tutti-world")));
}

/// All ranks are here, and nobody is in a call.
void stand_still(World& world) {
  for (int i = 0; i < 2; ++i) {
    const auto met = world.post({.collective = Collective::barrier});
    ASSERT_TRUE(met.is_ok()) << met.status().message();
    ASSERT_TRUE(met.value()->wait().is_ok());
  }
}

Status exchange_blocks(World& world, std::size_t count) {
  const std::vector<float> input(count * static_cast<std::size_t>(world.ranks()), 1.0F);
  std::vector<float> output(input.size());
  TUTTI_ASSIGN_OR_RETURN(const auto operation, world.post({.collective = Collective::all_to_all,
                                                           .dtype = Dtype::f32,
                                                           .count = static_cast<Count>(count),
                                                           .input = input.data(),
                                                           .output = output.data()}));
  TUTTI_RETURN_IF_ERROR(operation->wait());
  return output == input ? Status() : error(Code::mismatch, "not all blocks have come");
}

Status pass_round(World& world, std::size_t count) {
  const std::vector<float> sent(count, static_cast<float>(world.rank()));
  std::vector<float> got(count);
  const int before = (world.rank() + world.ranks() - 1) % world.ranks();
  TUTTI_ASSIGN_OR_RETURN(const auto receive,
                         world.post_recv(got.data(), static_cast<Count>(count), Dtype::f32, before));
  TUTTI_ASSIGN_OR_RETURN(const auto send, world.post_send(sent.data(), static_cast<Count>(count), Dtype::f32,
                                                          (world.rank() + 1) % world.ranks()));
  TUTTI_RETURN_IF_ERROR(send->wait());
  TUTTI_RETURN_IF_ERROR(receive->wait());
  return got.back() == static_cast<float>(before) ? Status() : error(Code::mismatch, "{} from {}", got.back(), before);
}

TEST(World, ItsMemoryIsAllocatedWhenCallsNeedIt) {
  struct Row {
    int ranks;
    std::int64_t joined, small, half;  // KiB at most
  };
  for (const Row row : {Row{.ranks = 2, .joined = 16, .small = 96, .half = 2304},
                        {.ranks = 8, .joined = 48, .small = 192, .half = 9216}}) {
    WorldMemory memory;
    as_threads(
        row.ranks,
        [&](World& world) {
          const auto at_most = [&](const char* when, std::int64_t kibibytes) {
            stand_still(world);
            if (world.rank() == 0) {
              EXPECT_LE(memory.allocated(), kibibytes * 1024) << row.ranks << " ranks, " << when;
            }
            stand_still(world);
          };
          const auto works = [](const Status& status) { EXPECT_TRUE(status.is_ok()) << status.message(); };
          at_most("joined", row.joined);
          works(add_ones(world, 2));
          at_most("all_reduce of 8 B", row.joined);
          works(add_ones(world, 1024));
          at_most("all_reduce of 4 KiB", row.small);
          works(add_ones(world, 262'144));
          works(exchange_blocks(world, 2));
          works(exchange_blocks(world, 65'536));
          works(pass_round(world, 2));
          works(pass_round(world, 100'000));
          at_most("long ones", row.half);
        },
        {}, &memory);
    EXPECT_GT(memory.size(), row.half * 1024);
  }
}

TEST(World, WhereMemoryCannotGrowTheRankAndTheOthersAreTold) {
  Processes processes(2, [](const Exchange& exchange, int rank) -> std::string {
    const auto world = World::join(exchange, rank, 2);
    if (!world.is_ok()) return world.status().message();
    // As if memory had ended: this process can have the first eighth alone.
    if (rank == 0) {
      std::ifstream maps("/proc/self/maps");
      for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0, end = 0;
        if (line.find("tutti-world") == std::string::npos || std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) != 2) {
          continue;
        }
        const std::uintptr_t from = (begin + (end - begin) / 8) / 4096 * 4096;
        ::mmap(reinterpret_cast<void*>(from), end - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      }
    }
    const Status status = add_ones(*world.value(), 262'144);
    return add_ones(*world.value(), 1).is_ok() ? "the world goes on" : status.message();
  });
  EXPECT_THAT(processes.said_by(0), AllOf(HasSubstr("no room for "), HasSubstr(" bytes more of shared memory"),
                                          HasSubstr("are available: end other programs")));
  EXPECT_THAT(processes.said_by(1), HasSubstr("rank 0 failed: resource: no room for "));
}

TEST(World, MessagesAreMatchedByTag) {
  as_threads(2, [](World& world) {
    std::array<int, 2> data{world.rank() == 0 ? 1 : 0, world.rank() == 0 ? 2 : 0};
    std::vector<std::shared_ptr<Operation>> operations;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const int tag = 10 + static_cast<int>(world.rank() == 0 ? i : 1 - i);
      auto* const at = &data[world.rank() == 0 ? i : 1 - i];
      const auto posted =
          world.rank() == 0 ? world.post_send(at, 1, Dtype::i32, 1, tag) : world.post_recv(at, 1, Dtype::i32, 0, tag);
      ASSERT_TRUE(posted.is_ok());
      operations.push_back(posted.value());
    }
    for (const auto& each : operations) EXPECT_TRUE(each->wait().is_ok());
    EXPECT_EQ(data, (std::array<int, 2>{1, 2}));
  });
}

TEST(World, AMessageIsTakenOfWhoeverSends) {
  as_threads(3, [](World& world) {
    int data = world.rank();
    if (world.rank() > 0) {
      const auto sent = world.post_send(&data, 1, Dtype::i32, 0, 7);
      ASSERT_TRUE(sent.is_ok());
      EXPECT_TRUE(sent.value()->wait().is_ok());
      return;
    }
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      int from = -1;
      const auto posted = world.post_recv_from_any(&data, 1, Dtype::i32, 7, &from);
      ASSERT_TRUE(posted.is_ok());
      EXPECT_TRUE(posted.value()->wait().is_ok());
      EXPECT_EQ(data, from);
      sum += from;
    }
    EXPECT_EQ(sum, 3);
  });
}

}  // namespace
}  // namespace tutti::embed
