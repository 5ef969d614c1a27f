// SPDX-License-Identifier: Apache-2.0
// Calls of v forms as the communicator takes them: with their blocks, on schedules that take counts, proved where plans
// are. What they mean is shown by suites/conformance/v_forms_test.cc.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/communicator/communicator.h"
#include "impl/transports/local/domain.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;
using Numbers = std::vector<Count>;

/// Two ranks in this thread; rank 0 has a block of 2 and one of 1 both ways, and so has rank 1 in the other order.
class VCalls : public testing::Test {
 protected:
  VCalls() {
    const Numbers counts[] = {{2, 1}, {1, 2}};
    for (int rank = 0; rank < 2; ++rank) {
      communicators_.push_back(
          Communicator::create(*domain_, rank, {.timeout = std::chrono::seconds(10), .prove_plans = true}).value());
      const Division division{.counts = counts[rank]};
      tables_.push_back(blocks_of(problem_, division, division, sizeof(float)).value());
    }
  }
  Call call_of(int rank, const Schedule* schedule = nullptr) {
    const auto index = static_cast<std::size_t>(rank);
    return {.collective = Collective::all_to_all_v,
            .input = inputs_[index].data(),
            .output = outputs_[index].data(),
            .schedule = schedule,
            .blocks = &tables_[index]};
  }

  const Problem problem_{.collective = Collective::all_to_all, .ranks = 2};
  std::unique_ptr<Domain> domain_ = local::open_domain(local::shape_for(2)).value();
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<BlockTable> tables_;
  std::vector<Floats> inputs_{{0, 1, 2}, {10, 11, 12}};
  std::vector<Floats> outputs_{Floats(3), Floats(3)};
};

TEST_F(VCalls, ArePreparedAndThenPostedWithTheSameBlocks) {
  std::vector<Work> works;
  for (int rank = 0; rank < 2; ++rank) {
    const Status prepared = communicators_[static_cast<std::size_t>(rank)]->prepare(call_of(rank));
    EXPECT_TRUE(prepared.is_ok()) << prepared.message();
    const BlockTable copy = tables_[static_cast<std::size_t>(rank)];
    Call call = call_of(rank);
    call.blocks = &copy;
    works.push_back(communicators_[static_cast<std::size_t>(rank)]->post(call).value());
  }
  for (bool is_done = false; !is_done;) {
    is_done = works[0].test().value();
    is_done = works[1].test().value() && is_done;
  }
  EXPECT_THAT(outputs_[0], ElementsAre(0, 1, 10));
  EXPECT_THAT(outputs_[1], ElementsAre(2, 11, 12));
}

TEST_F(VCalls, OfListsArePostedAndTheListsAreFreeAtOnce) {
  std::vector<Work> works;
  for (const std::size_t rank : {0U, 1U}) {
    Floats &in = inputs_[rank], &out = outputs_[rank];
    const Count first = rank == 0 ? 2 : 1;
    std::vector<ConstPart> from{{in.data(), first}, {in.data() + first, 3 - first}};
    std::vector<Part> to{{out.data() + 3 - first, first}, {out.data(), 3 - first}};  // in the other order
    works.push_back(communicators_[rank]->post_list({.collective = Collective::all_to_all_v}, from, to).value());
    from.assign(2, {});
    to.assign(2, {});
  }
  for (bool is_done = false; !is_done;) {
    is_done = works[0].test().value();
    is_done = works[1].test().value() && is_done;
  }
  EXPECT_THAT(outputs_[0], ElementsAre(10, 0, 1));
  EXPECT_THAT(outputs_[1], ElementsAre(11, 12, 2));
}

TEST_F(VCalls, OfListsAreInPlaceWhereTheAddressesAre) {
  std::vector<Work> works;
  for (const std::size_t rank : {0U, 1U}) {
    Floats& all = inputs_[rank];
    const Part parts[] = {{all.data(), 2}, {all.data() + 2, 1}};
    const Call call{.collective = Collective::all_gather_v, .input = parts[rank].address};
    works.push_back(communicators_[rank]->post_list(call, {}, parts).value());
  }
  for (bool is_done = false; !is_done;) {
    is_done = works[0].test().value();
    is_done = works[1].test().value() && is_done;
  }
  for (const Floats& all : inputs_) EXPECT_THAT(all, ElementsAre(0, 1, 12));
}

TEST_F(VCalls, OfListsRefuseListsThatTheCollectiveHasNot) {
  const std::vector<ConstPart> from(2);
  const std::vector<Part> to(2), long_one(3);
  const auto refused = [&](Collective collective, std::span<const ConstPart> in, std::span<const Part> out) {
    const Status status = communicators_[0]->post_list({.collective = collective}, in, out).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.message();
  };
  EXPECT_THAT(refused(Collective::all_gather, {}, to), HasSubstr("all_gather has no operand that is a list"));
  EXPECT_THAT(refused(Collective::gather_v, from, to), HasSubstr("gather_v: its input is one buffer"));
  EXPECT_THAT(refused(Collective::scatter_v, {}, {}), HasSubstr("scatter_v: its input is a list of blocks"));
  EXPECT_THAT(refused(Collective::all_to_all_v, from, {}), HasSubstr("all_to_all_v: its output is a list of blocks"));
  EXPECT_THAT(refused(Collective::all_gather_v, {}, long_one), HasSubstr("3"));
}

TEST_F(VCalls, HaveBlocksAndOthersHaveNone) {
  Call call = call_of(0);
  call.blocks = nullptr;
  EXPECT_EQ(communicators_[0]->prepare(call).message(), "all_to_all_v without blocks of their own lengths");
  call = call_of(0);
  call.collective = Collective::all_to_all;
  EXPECT_EQ(communicators_[0]->prepare(call).message(), "all_to_all has no blocks of their own lengths");
}

TEST_F(VCalls, AreRefusedByAScheduleThatTakesNoCounts) {
  const Schedule direct = schedule_of(*find_algorithm(Collective::all_to_all, "direct").value(), problem_);
  EXPECT_THAT(communicators_[0]->prepare(call_of(0, &direct)).message(),
              HasSubstr("all_to_all direct takes no counts"));
}

// Rank 0 puts into its second block what it should put into its first, and the other way round.
TEST_F(VCalls, OfAScheduleThatIsWrongAreRefutedBeforeTheyRun) {
  Schedule swapped = schedule_of(*find_algorithm(Collective::all_to_all, "pairwise").value(), problem_);
  swapped.name = "swapped";
  swapped.step = [right = swapped.step](int rank, int index) {
    Step step = right(rank, index);
    for (int i = 0; rank == 0 && i < step.destinations.size; ++i) {
      Operand& to = step.destinations.items[static_cast<std::size_t>(i)];
      if (to.space == Space::output) to.units.start = 1 - to.units.start;
    }
    return step;
  };
  const Numbers equal{2, 2};
  const Division division{.counts = equal};
  tables_[0] = blocks_of(problem_, division, division, sizeof(float)).value();
  const auto work = communicators_[0]->post(call_of(0, &swapped));
  EXPECT_EQ(work.status().code(), Code::refuted);
  EXPECT_THAT(work.status().message(), HasSubstr("all_to_all_v swapped on 2 ranks, with counts: rank 0"));
}

}  // namespace
}  // namespace tutti
