// SPDX-License-Identifier: Apache-2.0
// What the MPI shim refuses, and why, asked before MPI_Init: a row that is `skipped` prints these words.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "impl/collective/collective.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MpiShim : public testing::Test {
 protected:
  static std::string refusal(const TuttiBackendCall& call) {
    static const auto backend = LoadedBackend::load("openmpi", std::vector<std::string>{TUTTI_BIN});
    TUTTI_ASSERT(backend.is_ok(), "{}", backend.status().message());
    return backend.value().supports(call).message();
  }
  TuttiBackendCall call_{.collective = "all_reduce",
                         .dtype = "float",
                         .op = "sum",
                         .root = 0,
                         .in_place = 0,
                         .count = 10,
                         .element_bytes = 4,
                         .send = nullptr,
                         .recv = nullptr};
};

TEST_F(MpiShim, AcceptsWhatMpiHas) {
  EXPECT_EQ(refusal(call_), "");
  call_.op = "max";
  call_.dtype = "int32";
  EXPECT_EQ(refusal(call_), "");
  call_.collective = "all_to_all";
  call_.op = "none";
  call_.dtype = "bfloat16";
  call_.element_bytes = 2;
  EXPECT_EQ(refusal(call_), "");
}

TEST_F(MpiShim, RefusesBuffersOfADevice) {
  call_.memory = TUTTI_MEMORY_CUDA;
  EXPECT_THAT(refusal(call_), HasSubstr("host memory only"));
}

TEST_F(MpiShim, RefusesAvg) {
  call_.op = "avg";
  EXPECT_EQ(refusal(call_), "MPI has no avg");
}

TEST_F(MpiShim, HasEveryOpButAvgOfItsOwnTypes) {
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      const std::string dtype_name(to_string(dtype)), op_name(to_string(op));
      call_.dtype = dtype_name.c_str();
      call_.op = op_name.c_str();
      call_.element_bytes = size_of(dtype);
      const bool has_type = is_integer(dtype) || dtype == Dtype::f32 || dtype == Dtype::f64;
      const std::string reason = op == Op::avg          ? "MPI has no avg"
                                 : op == Op::premul_sum ? "MPI has no premul_sum"
                                 : !has_type            ? "MPI has no arithmetic for " + dtype_name
                                 : op == Op::sum && size_of(dtype) == 1
                                     ? "Open MPI saturates sums of " + dtype_name + ", which wrap here"
                                 : op_exists(op, dtype) ? ""
                                                        : "MPI has no " + op_name + " of " + dtype_name;
      EXPECT_EQ(refusal(call_), reason);
    }
  }
}

TEST_F(MpiShim, MovesEveryDtype) {
  for (const Dtype dtype : all_dtypes()) {
    const std::string name(to_string(dtype));
    call_.dtype = name.c_str();
    call_.op = "none";
    call_.element_bytes = size_of(dtype);
    call_.collective = "all_to_all";
    call_.in_place = 0;
    EXPECT_EQ(refusal(call_), "") << name;
    call_.collective = "broadcast";
    call_.in_place = 1;
    EXPECT_EQ(refusal(call_), "") << name;
  }
}

TEST_F(MpiShim, CountsBytesOfWhatItMovesAsBytes) {
  call_.collective = "all_to_all";
  call_.op = "none";
  call_.dtype = "half";
  call_.element_bytes = 2;
  call_.count = 1073741823;
  EXPECT_EQ(refusal(call_), "");
  call_.count = 1073741824;
  EXPECT_THAT(refusal(call_), AllOf(HasSubstr("1073741824"), HasSubstr("to 1073741823")));
}

TEST_F(MpiShim, RefusesABroadcastOutOfPlace) {
  call_.collective = "broadcast";
  call_.op = "none";
  EXPECT_THAT(refusal(call_), HasSubstr("MPI_Bcast has one buffer"));
  call_.in_place = 1;
  EXPECT_EQ(refusal(call_), "");
}

TEST_F(MpiShim, RefusesCountsBeyondAnIntWithTheNumber) {
  call_.count = 2147483647;
  EXPECT_EQ(refusal(call_), "");
  call_.count = 2147483648;
  EXPECT_THAT(refusal(call_), AllOf(HasSubstr("2147483648"), HasSubstr("to 2147483647")));
}

TEST_F(MpiShim, HasEveryCollectiveWithoutBlockingButThoseOfPairs) {
  call_.asynchronous = 1;
  for (const Collective collective : every_collective()) {
    if (has_counts(collective)) continue;
    const std::string name(to_string(collective));
    call_.collective = name.c_str();
    call_.op = is_reducing(collective) ? "max" : "none";
    for (const bool is_in_place : {false, true}) {
      call_.in_place = is_in_place ? 1 : 0;
      call_.asynchronous = 0;
      const std::string blocking = refusal(call_);
      call_.asynchronous = 1;
      const std::string in_place = is_in_place ? " in place" : "";
      const bool has_none = collective == Collective::pingpong || has_window(collective) ||
                            (collective == Collective::sendrecv && is_in_place);
      EXPECT_EQ(refusal(call_), has_none ? "this MPI has no sound nonblocking " + name + in_place : blocking);
    }
  }
}

TEST_F(MpiShim, SendsAndReceivesEveryDtype) {
  call_.op = "none";
  for (const char* name : {"send", "recv"}) {
    call_.collective = name;
    for (const Dtype dtype : all_dtypes()) {
      const std::string dtype_name(to_string(dtype));
      call_.dtype = dtype_name.c_str();
      call_.element_bytes = size_of(dtype);
      for (call_.asynchronous = 0; call_.asynchronous < 2; ++call_.asynchronous) EXPECT_EQ(refusal(call_), "");
    }
  }
}

class MpiShimV : public MpiShim {
 protected:
  MpiShimV() {
    call_.op = "none";
    call_.count = 3;
    call_.blocks = 2;
  }
  const std::int64_t counts_[2] = {3, 1};
  const std::int64_t displacements_[2] = {0, 3};
  const std::int64_t with_gap_[2] = {0, 4};
};

TEST_F(MpiShimV, AcceptsVForms) {
  call_.collective = "gather_v";
  call_.recv_counts = counts_;
  call_.recv_displacements = with_gap_;
  EXPECT_EQ(refusal(call_), "");
  call_.collective = "all_gather_v";
  EXPECT_EQ(refusal(call_), "");
  call_.send_counts = counts_;
  call_.send_displacements = with_gap_;
  call_.collective = "all_to_all_v";
  EXPECT_EQ(refusal(call_), "");
  call_.recv_counts = call_.recv_displacements = nullptr;
  call_.collective = "scatter_v";
  EXPECT_EQ(refusal(call_), "");
}

TEST_F(MpiShimV, ReduceScatterHasNoDisplacements) {
  call_.collective = "reduce_scatter_v";
  call_.op = "sum";
  call_.send_counts = counts_;
  call_.send_displacements = displacements_;
  EXPECT_EQ(refusal(call_), "");
  call_.send_displacements = with_gap_;
  EXPECT_EQ(refusal(call_), "MPI_Reduce_scatter has no displacements: each block follows the one before it");
  call_.send_displacements = displacements_;
  call_.in_place = 1;
  EXPECT_THAT(refusal(call_), HasSubstr("MPI_Reduce_scatter in place leaves its result in block 0"));
}

TEST_F(MpiShimV, CountsAndDisplacementsFitAnIntOfMpisElements) {
  call_.collective = "all_gather_v";
  call_.dtype = "half";
  call_.element_bytes = 2;
  const std::int64_t large[2] = {1073741823, 1073741824};
  call_.recv_counts = counts_;
  call_.recv_displacements = large;
  EXPECT_EQ(refusal(call_), "displacement 1073741824 of block 1 does not fit one MPI call: it takes 0 to 1073741823");
  call_.recv_counts = large;
  EXPECT_EQ(refusal(call_), "count 1073741824 of block 1 does not fit one MPI call: it takes 0 to 1073741823");
}

TEST_F(MpiShim, RefusesNamesThatItDoesNotKnow) {
  call_.collective = "gossip";
  EXPECT_THAT(refusal(call_), HasSubstr("collective 'gossip'"));
  call_.collective = "all_reduce";
  call_.dtype = "complex";
  EXPECT_THAT(refusal(call_), HasSubstr("dtype 'complex'"));
  call_.dtype = "float";
  call_.op = "mean";
  EXPECT_THAT(refusal(call_), HasSubstr("op 'mean'"));
  call_.op = "sum";
  call_.element_bytes = 8;
  EXPECT_EQ(refusal(call_), "float has 4 bytes here, not 8");
}

TEST_F(MpiShim, DescribesItselfBeforeItIsOpen) {
  const auto backend = LoadedBackend::load("openmpi", std::vector<std::string>{TUTTI_BIN}).value();
  const auto json = nlohmann::json::parse(backend.describe().value());
  EXPECT_EQ(json.at("library"), "Open MPI");
  EXPECT_THAT(json.at("version").get<std::string>(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\..*"));
  EXPECT_EQ(json.at("transport"), "");
}

}  // namespace
}  // namespace tutti::harness
