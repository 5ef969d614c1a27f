// SPDX-License-Identifier: Apache-2.0
// References whose calls are posted on a stream, with buffers on a device: through ReferenceBackend and Variant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/reference.h"
#include "harness/measure/check.h"
#include "harness/measure/variant.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/stream_backend.h"

namespace tutti::harness::measure {
namespace {

using testing::HasSubstr;

class OnAStream : public testing::Test {
 protected:
  void open(int ranks, bool has_all = true) {
    table_ = stream_table(has_all);
    runner_.emplace(memory_.board(), RunnerOptions{.runner = 0, .runners = 1, .job_ranks = ranks, .ranks = {0, 1}});
    if (ranks == 1)
      runner_.emplace(memory_.board(), RunnerOptions{.runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}});
    backend_ = ReferenceBackend::over(LoadedBackend::of(table_));
    ASSERT_TRUE(backend_->open(ranks, 0, {.local_ranks = ranks}).is_ok());
    one_.collective = Collective::all_gather;
    one_.ranks = ranks;
    one_.count = 300;
    one_.bytes = buffer_bytes(one_.problem(), one_.count, size_of(one_.dtype));
  }
  [[nodiscard]] Result<Variant> variant(bool is_asynchronous) {
    return Variant::create(*runner_,
                           {.backend = *backend_,
                            .memory = [this](const Case&, std::size_t) { return library_.device.allocator(); },
                            .instance = one_,
                            .is_asynchronous = is_asynchronous});
  }
  [[nodiscard]] Row checked(bool is_asynchronous) {
    auto made = variant(is_asynchronous);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    auto row = check_case(*runner_, made.value());
    EXPECT_TRUE(row.is_ok()) << row.status().message();
    return row.is_ok() ? row.value() : Row();
  }

  StreamLibrary library_;
  TuttiBackend table_{};
  BoardMemory memory_{2};
  std::optional<Runner> runner_;
  std::unique_ptr<ReferenceBackend> backend_;
  Case one_;
};

TEST_F(OnAStream, ACallKnowsItsMemoryItsStreamAndItsRank) {
  open(2);
  EXPECT_EQ(checked(false).verdict, Verdict::ok);
  ASSERT_EQ(library_.prepared.size(), 2U);
  for (std::int32_t local = 0; local < 2; ++local) {
    const TuttiBackendCall& call = library_.prepared[static_cast<std::size_t>(local)];
    EXPECT_EQ(call.memory, TUTTI_MEMORY_CUDA);
    EXPECT_EQ(call.stream, library_.device.stream());
    EXPECT_EQ(call.local, local);
  }
}

TEST_F(OnAStream, OneRankRunsOrPosts) {
  for (const bool is_asynchronous : {false, true}) {
    for (const bool has_all : {false, true}) {
      open(1, has_all);
      const Row row = checked(is_asynchronous);
      EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
      EXPECT_EQ(library_.prepared.back().asynchronous, is_asynchronous ? 1 : 0);
      EXPECT_EQ(library_.groups, 0);
      EXPECT_TRUE(backend_->close().is_ok());
    }
  }
}

TEST_F(OnAStream, SeveralRanksOfAProcessPostTogether) {
  open(2);
  const Row row = checked(false);
  EXPECT_EQ(row.verdict, Verdict::ok) << row.reason;
  EXPECT_GE(library_.groups, 2) << "an operation of all ranks each";
}

TEST_F(OnAStream, ALibraryThatForgetsToSynchroniseIsWrong) {
  for (const bool is_asynchronous : {false, true}) {
    open(1);
    library_.forgets_to_synchronise = true;
    EXPECT_EQ(checked(is_asynchronous).verdict, Verdict::wrong);
  }
}

TEST_F(OnAStream, WhatTheLibraryFindsAfterACallEndsTheRun) {
  open(1);
  auto made = variant(true);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  RankTimes times;
  made.value().refill(1);
  EXPECT_TRUE(made.value().run(times).is_ok());
  library_.error = "the link is down";
  const Status status = made.value().run(times);
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_THAT(status.message(), HasSubstr("backend late: the link is down"));
}

TEST_F(OnAStream, SharedBuffersAreRegisteredWhereTheLibraryCan) {
  for (const bool has_all : {true, false}) {
    open(2, has_all);
    one_.buffers = Buffers::shared;
    library_.registered = library_.forgotten = 0;
    library_.registered_bytes = 0;
    EXPECT_TRUE(variant(false).is_ok());
    EXPECT_EQ(library_.registered, has_all ? 4 : 0) << "an input and an output of each rank";
    EXPECT_EQ(library_.forgotten, library_.registered);
    EXPECT_EQ(library_.registered_bytes, has_all ? 2U * 4 * (300 + 600) : 0U);
  }
}

TEST_F(OnAStream, AWorldThatWasNotClosedIsAborted) {
  open(2);
  EXPECT_TRUE(backend_->close().is_ok());
  backend_ = nullptr;
  EXPECT_EQ(library_.closed, 1);
  EXPECT_EQ(library_.aborted, 0);
  open(2);
  backend_ = nullptr;
  EXPECT_EQ(library_.aborted, 2) << "of each rank";
}

TEST_F(OnAStream, BuffersOfTheHostHaveNoStream) {
  open(1);
  const auto made = Variant::create(
      *runner_,
      {.backend = *backend_, .memory = [](const Case&, std::size_t) { return plain_memory(); }, .instance = one_});
  EXPECT_THAT(made.status().message(), HasSubstr("not on a stream"));
  ASSERT_EQ(library_.prepared.size(), 1U);
  EXPECT_EQ(library_.prepared.front().memory, TUTTI_MEMORY_HOST);
  EXPECT_EQ(library_.prepared.front().stream, nullptr);
}

}  // namespace
}  // namespace tutti::harness::measure
