// SPDX-License-Identifier: Apache-2.0
// The public API on ranks as threads and as tasks: every algorithm, small and segmented, in and out of place, and what
// happens when ranks do not agree or do not come.
#include "impl/communicator/communicator.h"

#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Runs `body(communicator)` on every rank of a domain of this shape, one thread each.
void in_domain(int ranks, const DomainShape& shape, CommunicatorOptions options,
               const std::function<void(Communicator&)>& body) {
  auto domain = local::open_domain(shape);
  ASSERT_TRUE(domain.is_ok()) << domain.status().message();
  options.waiting = ranks > 2 ? Waiting::yield : Waiting::spin;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator = Communicator::create(*domain.value(), rank, options);
      ASSERT_TRUE(communicator.is_ok());
      body(*communicator.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::int32_t element(int rank, Count index, int salt) {
  return static_cast<std::int32_t>((rank + 1) * 1000003 + index * 7919 + salt * 104729);
}

struct Form {
  const Algorithm* algorithm;
  int ranks;
  Count count;
  bool is_in_place;
  Buffers buffers;
  int root;
};

/// Fills, runs and checks one call; int32, so that any order gives the same bits.
void run_and_check(Communicator& communicator, const Form& form, const Schedule& schedule, int salt) {
  const int rank = communicator.rank();
  const Problem problem = schedule.problem;
  const int inputs = input_blocks(problem, rank);
  const int blocks = std::max(inputs, output_blocks(problem, rank));
  std::vector<std::int32_t> in(static_cast<std::size_t>(blocks * form.count)), out(in.size(), -1);
  const int shift = form.is_in_place ? in_place_block(problem, rank) : 0;
  std::int32_t* const input = in.data() + std::max(0, shift) * form.count;
  for (Count i = 0; i < inputs * form.count; ++i) input[i] = element(rank, i, salt);
  const std::vector<std::int32_t> before = in;
  std::int32_t* const output = form.is_in_place ? in.data() + std::max(0, -shift) * form.count : out.data();
  const Status status = communicator.run({.collective = problem.collective,
                                          .dtype = Dtype::i32,
                                          .op = is_reducing(problem.collective) ? Op::sum : Op::none,
                                          .root = form.root,
                                          .count = form.count,
                                          .input = input,
                                          .output = output,
                                          .is_in_place = form.is_in_place,
                                          .buffers = form.buffers,
                                          .schedule = &schedule});
  ASSERT_TRUE(status.is_ok()) << status.message();
  if (!form.is_in_place) {
    ASSERT_EQ(in, before);
  }
  for (int block = 0; block < output_blocks(problem, rank); ++block) {
    const Origin origin = origin_of(problem, rank, block);
    for (Count i = 0; i < form.count; ++i) {
      const Count source = origin.block * form.count + i;
      std::uint32_t expected = 0;
      for (int r = 0; r < problem.ranks; ++r) {
        if (origin.has(r)) expected += static_cast<std::uint32_t>(element(r, source, salt));
      }
      ASSERT_EQ(static_cast<std::uint32_t>(output[block * form.count + i]), expected)
          << schedule.name << " P " << problem.ranks << " rank " << rank << " block " << block << " element " << i
          << (form.is_in_place ? " in place" : "");
    }
  }
}

TEST(Communicator, EveryAlgorithmIsRightOnThreadsWithSegmentsAndTails) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const int ranks : {1, 2, 3, 6}) {
      DomainShape shape = local::shape_for(ranks);
      shape.slot_bytes = 256;
      shape.scratch_bytes = 8192;
      std::vector<Form> forms;
      std::vector<Schedule> schedules;
      for (const Count count : {Count{0}, Count{1}, Count{ranks + 1}, Count{1023}, Count{6007}}) {
        for (const bool is_in_place : {false, true}) {
          for (const Buffers buffers : {Buffers::private_, Buffers::shared}) {
            for (const int root : {0, ranks - 1}) {
              if (root > 0 && !is_rooted(algorithm->collective)) continue;
              forms.push_back({algorithm, ranks, count, is_in_place, buffers, root});
              schedules.push_back(schedule_of(*algorithm, {algorithm->collective, ranks, root}));
            }
          }
        }
      }
      in_domain(ranks, shape, {.prove_plans = false}, [&](Communicator& communicator) {
        for (std::size_t i = 0; i < forms.size(); ++i) {
          for (int repeat = 0; repeat < 3; ++repeat) {
            run_and_check(communicator, forms[i], schedules[i], repeat);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      });
    }
  }
}

TEST(Communicator, OneThreadDrivesManyRanksAsTasks) {
  constexpr int kRanks = 33;
  auto domain = local::open_domain(local::shape_for(kRanks));
  ASSERT_TRUE(domain.is_ok());
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < kRanks; ++rank) {
    communicators.push_back(Communicator::create(*domain.value(), rank, {.prove_plans = false}).value());
  }
  std::vector<float> values(kRanks);
  std::vector<Work> works;
  for (int rank = 0; rank < kRanks; ++rank) {
    values[static_cast<std::size_t>(rank)] = static_cast<float>(rank + 1);
    float* value = &values[static_cast<std::size_t>(rank)];
    auto work = communicators[static_cast<std::size_t>(rank)]->post({.collective = Collective::all_reduce,
                                                                     .op = Op::sum,
                                                                     .count = 1,
                                                                     .input = value,
                                                                     .output = value,
                                                                     .is_in_place = true});
    ASSERT_TRUE(work.is_ok()) << work.status().message();
    works.push_back(work.value());
  }
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (Work& work : works) {
      const auto done = work.test();
      ASSERT_TRUE(done.is_ok()) << done.status().message();
      is_done &= done.value();
    }
  }
  EXPECT_THAT(values, testing::Each(33.0F * 34.0F / 2.0F));
}

TEST(Communicator, LaterCallsMayBePostedBeforeEarlierOnesAreComplete) {
  in_domain(3, local::shape_for(3), {.prove_plans = false}, [](Communicator& communicator) {
    constexpr int kCalls = 50;
    std::vector<float> values(kCalls, static_cast<float>(communicator.rank()));
    std::vector<Work> works;
    for (float& value : values) {
      works.push_back(communicator
                          .post({.collective = Collective::all_reduce,
                                 .op = Op::max,
                                 .count = 1,
                                 .input = &value,
                                 .output = &value,
                                 .is_in_place = true})
                          .value());
    }
    for (Work& work : works) ASSERT_TRUE(work.wait(seconds(10)).is_ok());
    EXPECT_THAT(values, testing::Each(2.0F));
  });
}

TEST(Communicator, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  in_domain(2, local::shape_for(2), {.timeout = milliseconds(100), .prove_plans = false},
            [](Communicator& communicator) {
              if (communicator.rank() == 1) return;
              const Status status = communicator.barrier();
              EXPECT_EQ(status.code(), Code::timeout);
              EXPECT_THAT(status.message(), testing::HasSubstr("waits for phase 1 of rank 1"));
              EXPECT_EQ(communicator.barrier().code(), Code::timeout) << "the first error is the communicator's end";
            });
}

TEST(Communicator, RanksThatDoNotAgreeOnTheCountAreToldSo) {
  in_domain(2, local::shape_for(2), {.timeout = seconds(5), .prove_plans = false}, [](Communicator& communicator) {
    std::vector<float> values(64);
    const Count count = communicator.rank() == 0 ? 8 : 16;
    const Status status = communicator.all_reduce(values.data(), values.data(), count, Dtype::f32, Op::sum);
    EXPECT_TRUE(status.code() == Code::mismatch || status.code() == Code::aborted) << status.message();
  });
}

TEST(Communicator, ARootOutOfRangeIsRefused) {
  in_domain(1, local::shape_for(1), {.prove_plans = false}, [](Communicator& communicator) {
    float value = 0;
    const Status status = communicator.broadcast(&value, &value, 1, Dtype::f32, 7);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.message(), testing::HasSubstr("root 7 is out of range: 0 to 0"));
  });
}

TEST(Communicator, WhatIsNoDtypeOrOpIsRefused) {
  in_domain(1, local::shape_for(1), {.prove_plans = false}, [](Communicator& communicator) {
    float in = 0, out = 0;
    const Status dtype = communicator.all_reduce(&in, &out, 1, static_cast<Dtype>(77), Op::sum);
    EXPECT_THAT(dtype.message(), testing::HasSubstr("dtype 77 is out of range: 0 to 14"));
    const Status op = communicator.all_reduce(&in, &out, 1, Dtype::f32, static_cast<Op>(77));
    EXPECT_THAT(op.message(), testing::HasSubstr("op 77 is out of range"));
  });
}

TEST(Communicator, BuffersThatOverlapAreRefused) {
  in_domain(2, local::shape_for(2), {.prove_plans = false}, [](Communicator& communicator) {
    float values[8] = {};
    EXPECT_THAT(communicator.all_reduce(values, values + 3, 4, Dtype::f32, Op::sum).message(),
                testing::HasSubstr("overlap"));
    EXPECT_THAT(communicator.all_gather(values + 1, values, 4, Dtype::f32).message(), testing::HasSubstr("overlap"));
    EXPECT_TRUE(communicator.all_reduce(values, values + 4, 4, Dtype::f32, Op::sum).is_ok());
  });
}

TEST(Communicator, AFailedWaitWritesNothingLater) {
  in_domain(2, local::shape_for(2), {.prove_plans = false}, [](Communicator& communicator) {
    float in[2] = {1, 2}, out[2] = {-1, -1};
    if (communicator.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(150));
      (void)communicator.all_reduce(in, out, 2, Dtype::f32, Op::sum);
      return;
    }
    Work work =
        communicator.post({.collective = Collective::all_reduce, .op = Op::sum, .count = 2, .input = in, .output = out})
            .value();
    EXPECT_EQ(work.wait(milliseconds(20)).code(), Code::timeout);
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(work.wait(milliseconds(20)).code(), Code::timeout) << "the first error is the communicator's end";
    EXPECT_FALSE(work.test().is_ok());
    EXPECT_THAT(out, testing::Each(-1.0F));
  });
}

TEST(Communicator, RanksThatDoNotAgreeOnTheAlgorithmAreToldSoAtTheDeadline) {
  in_domain(2, local::shape_for(2), {.timeout = milliseconds(100), .prove_plans = false},
            [](Communicator& communicator) {
              const Problem problem{.collective = Collective::all_reduce, .ranks = 2};
              const char* const name = communicator.rank() == 0 ? "one_shot" : "two_shot";
              const Schedule schedule = schedule_of(*find_algorithm(problem.collective, name).value(), problem);
              std::vector<float> in(4), out(4);
              const Status status = communicator.run({.collective = problem.collective,
                                                      .op = Op::sum,
                                                      .count = 4,
                                                      .input = in.data(),
                                                      .output = out.data(),
                                                      .schedule = &schedule});
              EXPECT_TRUE(status.code() == Code::mismatch || status.code() == Code::aborted) << status.message();
            });
}

TEST(Communicator, PlacementAndBuffersMustFitTheCall) {
  in_domain(1, local::shape_for(1), {.prove_plans = false}, [](Communicator& communicator) {
    float a = 0, b = 0;
    Call call{.collective = Collective::all_reduce, .op = Op::sum, .count = 1, .input = &a, .output = &b};
    call.is_in_place = true;
    EXPECT_THAT(communicator.run(call).message(), testing::HasSubstr("input and output are two buffers"));
    call.is_in_place = false;
    call.output = nullptr;
    EXPECT_THAT(communicator.run(call).message(), testing::HasSubstr("the output is a null pointer"));
    EXPECT_TRUE(communicator.barrier().is_ok()) << "a refused call leaves the communicator usable";
  });
}

TEST(Communicator, ACallThatIsRepeatedTakesTheDataOfItsTime) {
  // 64 KiB with private buffers is staged: more than a cycle of trials of plain and non-temporal stores. 8 bytes go the
  // way of a repeated short call; posting in between leaves it and comes back.
  for (const Count count : {Count{2}, Count{16384}}) {
    in_domain(2, local::shape_for(2), {.prove_plans = false}, [count](Communicator& communicator) {
      std::vector<float> in(static_cast<std::size_t>(count)), out(in.size());
      for (int call = 0; call < 600; ++call) {
        const auto value = static_cast<float>(call % 1000 + 1000 * communicator.rank());
        std::fill(in.begin(), in.end(), value);
        if (call % 7 == 3) {
          ASSERT_TRUE(communicator.barrier().is_ok());
        } else if (call % 50 == 20) {
          std::this_thread::sleep_for(std::chrono::microseconds(100 * communicator.rank()));
        }
        ASSERT_TRUE(communicator.all_reduce(in.data(), out.data(), count, Dtype::f32, Op::sum).is_ok());
        ASSERT_THAT(out, testing::Each(static_cast<float>(2 * (call % 1000) + 1000))) << call;
      }
    });
  }
}

TEST(Communicator, APeerThatChangesItsBuffersIsRead) {
  // What rank 0 knows of rank 1's addresses from the last call must not outlive them.
  in_domain(2, local::shape_for(2), {.prove_plans = false}, [](Communicator& communicator) {
    constexpr Count kCount = 2048;
    std::vector<float*> buffers;
    for (int i = 0; i < 4; ++i) {
      buffers.push_back(static_cast<float*>(communicator.alloc_shared(kCount * sizeof(float)).value()));
    }
    for (int call = 0; call < 60; ++call) {
      const bool changes = communicator.rank() == 1 && call / 3 % 2 == 1;
      float* const in = buffers[changes ? 2 : 0];
      float* const out = buffers[changes && call % 2 == 0 ? 3 : 1];
      std::fill(in, in + kCount, static_cast<float>(call + 1000 * communicator.rank()));
      ASSERT_TRUE(communicator.all_reduce(in, out, kCount, Dtype::f32, Op::sum, Buffers::shared).is_ok());
      ASSERT_THAT(std::vector<float>(out, out + kCount), testing::Each(static_cast<float>(2 * call + 1000))) << call;
    }
    ASSERT_TRUE(communicator.barrier().is_ok());  // nobody reads them any more
    for (float* buffer : buffers) communicator.free_shared(buffer);
  });
}

}  // namespace
}  // namespace tutti
