// SPDX-License-Identifier: Apache-2.0
// With --sync library each system's samples start after its own barrier, and have that barrier's floor.
#include "harness/measure/barriers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::measure {
namespace {

using testing::Key;
using testing::UnorderedElementsAre;

/// Has a barrier of one runner, or refuses it.
class BarrierSystem final : public Backend {
 public:
  BarrierSystem(std::string name, bool has_barrier) : name_(std::move(name)), has_barrier_(has_barrier) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::string describe() const override { return "{}"; }
  [[nodiscard]] Status supports(const Case& one) const override {
    EXPECT_EQ(one.collective, Collective::barrier);
    EXPECT_EQ(one.transport, "local");
    return has_barrier_ ? Status() : error(Code::unavailable, "{} has no barrier", name_);
  }
  [[nodiscard]] std::string algorithm_of(const Case& /*one*/) const override { return std::string(kNone); }
  [[nodiscard]] Result<std::unique_ptr<Prepared>> prepare(const Case& /*one*/,
                                                          std::span<const RankBuffers> /*buffers*/) override {
    return std::unique_ptr<Prepared>(new Call(*this));
  }
  [[nodiscard]] int calls() const { return calls_; }

 private:
  class Call final : public Prepared {
   public:
    explicit Call(BarrierSystem& system) : system_(system) {}
    Status post(std::size_t /*index*/) override {
      ++system_.calls_;
      return {};
    }
    Result<bool> test(std::size_t /*index*/) override { return true; }

   private:
    BarrierSystem& system_;
  };
  std::string name_;
  bool has_barrier_;
  int calls_ = 0;
};

class OpenBarriers : public testing::Test {
 protected:
  OpenBarriers() {
    Case like;
    like.transport = "local";
    like.ranks = 1;
    like.ranks_as = RanksAs::tasks;
    const auto plain = [](const Case&, std::size_t) { return plain_memory(); };
    const Status status = barriers_.open(runner_, like, {{"one", &one_}, {"other", &other_}, {"none", &none_}}, plain);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  BoardMemory memory_{1};
  Runner runner_{memory_.board(), {.runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}}};
  BarrierSystem one_{"one", true}, other_{"other", true}, none_{"none", false};
  Barriers barriers_;
};

TEST_F(OpenBarriers, AreThoseOfEachSystem) {
  ASSERT_NE(barriers_.find("one"), nullptr);
  RankTimes times;
  EXPECT_TRUE(barriers_.find("other")->run(times).is_ok());
  EXPECT_EQ(one_.calls(), 0);
  EXPECT_EQ(other_.calls(), 1);
  EXPECT_TRUE(barriers_.has_start("other").is_ok());
}

TEST_F(OpenBarriers, WhereThereIsNoneTheReasonIsTold) {
  EXPECT_EQ(barriers_.find("none"), nullptr);
  EXPECT_EQ(barriers_.has_start("none").code(), Code::unavailable);
  EXPECT_EQ(barriers_.has_start("none").message(), "--sync library needs a barrier: none has no barrier");
}

TEST_F(OpenBarriers, HaveAFloorEach) {
  const auto floors = barriers_.measure_floors(runner_, Synchronisation::library);
  ASSERT_TRUE(floors.is_ok()) << floors.status().message();
  EXPECT_THAT(floors.value(), UnorderedElementsAre(Key("one"), Key("other")));
  EXPECT_EQ(one_.calls(), 200);
  EXPECT_EQ(other_.calls(), 200);
}

TEST(Barriers, OfNoSystemHaveOneFloorForAllAndStartEverything) {
  const BoardMemory memory(1);
  Runner runner(memory.board(), {.runner = 0, .runners = 1, .job_ranks = 1, .ranks = {0}});
  Barriers barriers;
  EXPECT_THAT(barriers.measure_floors(runner, Synchronisation::dissemination).value(),
              UnorderedElementsAre(Key("all")));
  EXPECT_TRUE(barriers.has_start("any").is_ok());
}

}  // namespace
}  // namespace tutti::harness::measure
