// SPDX-License-Identifier: Apache-2.0
// Deadlines of loops whose operations are all posted ahead, on a stream of one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/reference.h"
#include "harness/measure/variant.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/measure/stream_backend.h"

namespace tutti::harness::measure {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kEnds = 2;  // instants around all of it

class LoopAhead : public testing::Test {
 protected:
  /// After one operation, which says how long they take: a millisecond or more.
  void open(bool has_instants, std::chrono::nanoseconds timeout) {
    library_.device.has_instants = has_instants;
    table_ = stream_table(true);
    runner_.emplace(
        memory_.board(),
        RunnerOptions{
            .runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}, .yields = true, .timeout = timeout, .grace = 0ns});
    backend_ = ReferenceBackend::over(LoadedBackend::of(table_));
    ASSERT_TRUE(backend_->open(1, 0, {.local_ranks = 1}).is_ok());
    one_.collective = Collective::all_gather;
    one_.ranks = 1;
    one_.count = 30;
    one_.bytes = buffer_bytes(one_.problem(), one_.count, size_of(one_.dtype));
    auto made =
        Variant::create(*runner_, {.backend = *backend_,
                                   .memory = [this](const Case&, std::size_t) { return library_.device.allocator(); },
                                   .instance = one_,
                                   .is_asynchronous = true});
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    variant_.emplace(std::move(made).value());
    ASSERT_TRUE(variant_->run(times_).is_ok());
    library_.device.marks = 0;
    library_.begun = 0;
  }
  [[nodiscard]] RankStatus& status() const { return memory_.board().status(0); }

  StreamLibrary library_;
  TuttiBackend table_{};
  BoardMemory memory_{1};
  std::optional<Runner> runner_;
  std::unique_ptr<ReferenceBackend> backend_;
  Case one_;
  std::optional<Variant> variant_;
  RankTimes times_;
};

TEST_F(LoopAhead, MayTakeLongerThanTheDeadlineOfAnOperation) {
  for (const bool has_instants : {true, false}) {
    open(has_instants, 100ms);
    const Status status = variant_->run_loop(times_, {.operations = 150});
    EXPECT_TRUE(status.is_ok()) << status.message() << (has_instants ? "" : ", without milestones");
    EXPECT_GT(times_.leave_ns.front() - times_.enter_ns.front(), 100'000'000) << "which says nothing";
    variant_.reset();
  }
}

TEST_F(LoopAhead, IsToldWhereAnOperationDoesNotEnd) {
  for (const bool has_instants : {true, false}) {
    open(has_instants, 100ms);
    library_.hangs_at = 3;
    library_.goes_on = false;
    variant_->announce();
    const Status status = variant_->run_loop(times_, {.operations = 10});
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 does not end all_gather"));
    EXPECT_EQ(this->status().granted_ns.load() > 0, !has_instants) << "a milestone stands behind each";
    library_.goes_on = true;
    variant_.reset();
  }
}

TEST_F(LoopAhead, HasMilestonesWhereItsOperationsAreLong) {
  open(true, 100ms);
  ASSERT_TRUE(variant_->run_loop(times_, {.operations = 20}).is_ok());
  EXPECT_EQ(library_.device.marks, kEnds + 19);
  variant_.reset();
  open(true, 1h);
  ASSERT_TRUE(variant_->run_loop(times_, {.operations = 20}).is_ok());
  EXPECT_EQ(library_.device.marks, kEnds) << "together they take far less than a thousandth of an hour";
}

TEST_F(LoopAhead, TellsTheBoardThatItGetsOn) {
  open(true, 100ms);
  ASSERT_TRUE(variant_->run_loop(times_, {.operations = 3}).is_ok());
  EXPECT_EQ(status().pending_since_ns.load(), 0) << "nothing was announced";
  variant_->announce();
  const std::int64_t announced = status().pending_since_ns.load();
  const std::uint64_t operation = status().operation.load();
  ASSERT_TRUE(variant_->run_loop(times_, {.operations = 3}).is_ok());
  EXPECT_GT(status().pending_since_ns.load(), announced);
  EXPECT_EQ(status().operation.load(), operation) << "of other runners' ranks it is as many";
}

}  // namespace
}  // namespace tutti::harness::measure
