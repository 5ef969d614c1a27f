// SPDX-License-Identifier: Apache-2.0
// What the backend of NCCL refuses, and why: a row that is `skipped` prints these words.
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/nccl/translate.h"
#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::backend_nccl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NcclCalls : public testing::Test {
 protected:
  std::string refusal() { return translate(call_, abilities_, translated_ = made()); }
  Prepared made() const {
    Prepared prepared;
    if (group_ != nullptr) prepared.group = group_;
    return prepared;
  }
  void set(Dtype dtype) {
    dtype_ = to_string(dtype);
    call_.dtype = dtype_.c_str();
    call_.element_bytes = size_of(dtype);
  }
  void set(tutti::Op op) {
    op_ = to_string(op);
    call_.op = op_.c_str();
  }
  void set(Collective collective) {
    collective_ = to_string(collective);
    call_.collective = collective_.c_str();
    set(is_reducing(collective) ? tutti::Op::sum : tutti::Op::none);
  }

  std::string dtype_, op_, collective_;
  Abilities abilities_{.version = 22809, .capability = 90};
  std::shared_ptr<Group> group_ = std::make_shared<Group>(Group{.rank = 1, .ranks = 4});
  Prepared translated_;
  TuttiBackendCall call_{.collective = "all_reduce",
                         .dtype = "float",
                         .op = "sum",
                         .root = 0,
                         .in_place = 0,
                         .count = 10,
                         .element_bytes = 4,
                         .send = nullptr,
                         .recv = nullptr,
                         .memory = TUTTI_MEMORY_CUDA};
};

TEST_F(NcclCalls, ReduceEveryDtypeByTheOpsThatThereAre) {
  for (const Dtype dtype : all_dtypes()) {
    for (const tutti::Op op : all_ops()) {
      set(dtype);
      set(op);
      const bool is_missing = op == tutti::Op::band || op == tutti::Op::bor || op == tutti::Op::bxor;
      EXPECT_EQ(refusal(), is_missing ? "NCCL has no " + op_ : "") << dtype_;
      EXPECT_EQ(translated_.has_own_op, op == tutti::Op::premul_sum);
    }
    set(tutti::Op::sum);
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(translated_.type, static_cast<Type>(dtype)) << "NCCL's numbers are in the order of our dtypes";
  }
}

TEST_F(NcclCalls, HaveNoArithmeticOfEightBitsBeforeVersion24) {
  for (const Dtype dtype : {Dtype::f8e4m3, Dtype::f8e5m2}) {
    set(dtype);
    abilities_ = {.version = 22306, .capability = 90};
    EXPECT_EQ(refusal(), "NCCL 2.23.6 has no arithmetic for " + dtype_ + ": 2.24 is the first");
    abilities_ = {.version = 22400, .capability = 89};
    EXPECT_EQ(refusal(), "NCCL has arithmetic for " + dtype_ + " on GPUs of compute capability 9.0 and later, not 8.9");
    abilities_ = {.version = 22400, .capability = 90};
    EXPECT_EQ(refusal(), "");
    abilities_ = {};
    EXPECT_EQ(refusal(), "") << "nothing is known yet";
  }
}

TEST_F(NcclCalls, MoveEightBitFloatsAsBytes) {
  abilities_ = {.version = 21805, .capability = 70};
  for (const Dtype dtype : all_dtypes()) {
    set(Collective::broadcast);
    set(dtype);
    EXPECT_EQ(refusal(), "") << dtype_;
    const bool is_f8 = dtype == Dtype::f8e4m3 || dtype == Dtype::f8e5m2;
    EXPECT_EQ(translated_.type, is_f8 ? kUint8 : static_cast<Type>(dtype));
  }
}

TEST_F(NcclCalls, AreAllCollectivesButPrefixes) {
  for (const Collective collective : every_collective()) {
    set(collective);
    const bool is_missing = collective == Collective::scan || collective == Collective::exscan;
    EXPECT_EQ(refusal(), is_missing ? "NCCL has no " + collective_ : "");
  }
  for (const char* const message : {"send", "recv"}) {
    call_.collective = message;
    call_.op = "none";
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(NcclCalls, AreInPlaceWhereNothingIsOverwritten) {
  call_.in_place = 1;
  for (const Collective collective : every_collective()) {
    if (collective == Collective::scan || collective == Collective::exscan) continue;
    set(collective);
    const bool overwrites = collective == Collective::all_to_all || collective == Collective::all_to_all_v ||
                            collective == Collective::sendrecv || collective == Collective::bibandwidth;
    EXPECT_EQ(refusal(),
              overwrites ? "NCCL has no " + collective_ + " in place: messages would arrive in what is still to be sent"
                         : "");
  }
}

TEST_F(NcclCalls, DoNotAnswerBetweenRanksOfOneProcess) {
  group_->of_this_process = 2;
  for (const Collective collective : every_collective()) {
    set(collective);
    const bool answers = collective == Collective::pingpong || collective == Collective::bandwidth ||
                         collective == Collective::bibandwidth || collective == Collective::message_rate;
    if (!answers) continue;
    EXPECT_EQ(refusal(), "NCCL has no " + collective_ +
                             " between ranks of one process, whose calls start together: an " +
                             "answer follows what it answers");
  }
  set(Collective::sendrecv);
  EXPECT_EQ(refusal(), "");
}

TEST_F(NcclCalls, TakeBuffersOfAGpuOnly) {
  for (const char* const collective : {"all_reduce", "barrier", "send"}) {
    call_.collective = collective;
    call_.memory = TUTTI_MEMORY_HOST;
    EXPECT_EQ(refusal(), "NCCL is called with buffers in the memory of a GPU only");
    call_.memory = TUTTI_MEMORY_CUDA;
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(NcclCalls, TakeAnyCountThatBytesCanBeCountedOf) {
  for (const std::int64_t count : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max() / 4 / 4}) {
    call_.count = count;
    EXPECT_EQ(refusal(), "");
  }
  call_.count = std::numeric_limits<std::int64_t>::max() / 4 / 4 + 1;
  EXPECT_EQ(refusal(), "count 576460752303423488 does not fit one call of NCCL: it takes 0 to 576460752303423487");
  call_.count = -1;
  EXPECT_THAT(refusal(), HasSubstr("count -1 does not fit one call of NCCL: it takes 0 to "));
  call_.count = 1;
  call_.window = -2;
  EXPECT_EQ(refusal(), "a window of -2 messages: it takes 0 or more");
}

TEST_F(NcclCalls, HaveBlocksOfAnyLengthAndPlace) {
  const std::int64_t counts[] = {3, 0, 1, 2}, places[] = {7, 99, 0, 40};
  std::int64_t wrong[] = {3, -1, 1, 2};
  set(Collective::all_gather_v);
  call_.blocks = 4;
  call_.recv_counts = counts;
  call_.recv_displacements = places;
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(translated_.receive_blocks.size(), 4U);
  EXPECT_EQ(translated_.receive_blocks[3].count, 2U);
  EXPECT_EQ(translated_.receive_blocks[3].offset_bytes, 160U);
  call_.recv_counts = wrong;
  EXPECT_EQ(refusal(), "block 1 has -1 elements from element 99 on: both take 0 or more");
}

TEST_F(NcclCalls, OfNamesThatAreNotKnownAreRefused) {
  call_.collective = "gossip";
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("collective 'gossip' is not known here (one of: broadcast"), HasSubstr(" recv)")));
  call_.collective = "all_reduce";
  call_.dtype = "complex";
  EXPECT_EQ(refusal(),
            "dtype 'complex' is not known here (one of: int8 uint8 int32 uint32 int64 uint64 half float double "
            "bfloat16 f8e4m3 f8e5m2)");
  call_.dtype = "float";
  call_.op = "mean";
  EXPECT_EQ(refusal(), "op 'mean' is not known here (one of: sum prod min max avg premul_sum)");
  call_.op = "sum";
  call_.element_bytes = 8;
  EXPECT_EQ(refusal(), "float has 4 bytes here, not 8");
}

TEST_F(NcclCalls, OfPairsKnowTheirPartner) {
  set(Collective::pingpong);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(translated_.partner, 0);
  call_.first_of_pair = 1;
  call_.second_of_pair = 3;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(translated_.partner, 3);
  group_->rank = 2;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(translated_.partner, -1);
  EXPECT_EQ(partner_in("message_rate", 1, 5), 3);
  EXPECT_EQ(partner_in("message_rate", 4, 5), -1);
  EXPECT_EQ(partner_in("bandwidth", 4, 5), -1);
}

TEST_F(NcclCalls, CanBeAskedAboutBeforeTheWorldIsOpen) {
  group_ = nullptr;
  abilities_ = {};
  EXPECT_EQ(refusal(), "");
  set(Collective::pingpong);
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace tutti::backend_nccl
