// SPDX-License-Identifier: Apache-2.0
// What the backend of Gloo refuses, and why, asked before it is open: a row that is `skipped` prints these words.
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

const LoadedBackend& gloo() {
  static const auto backend = LoadedBackend::load("gloo", std::vector<std::string>{TUTTI_BIN});
  TUTTI_ASSERT(backend.is_ok(), "{}", backend.status().message());
  return backend.value();
}

class GlooShim : public testing::Test {
 protected:
  static std::string refusal(const TuttiBackendCall& call) { return gloo().supports(call).message(); }
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

TEST_F(GlooShim, HasFourOpsOfItsOwnTypes) {
  for (const Dtype dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      const std::string dtype_name(to_string(dtype)), op_name(to_string(op));
      call_.dtype = dtype_name.c_str();
      call_.op = op_name.c_str();
      call_.element_bytes = size_of(dtype);
      const bool has_op = op == Op::sum || op == Op::prod || op == Op::min || op == Op::max;
      const bool has_type = is_integer(dtype) || dtype == Dtype::f16 || dtype == Dtype::f32 || dtype == Dtype::f64;
      const std::string reason = !has_op     ? "Gloo has no " + op_name
                                 : !has_type ? "Gloo has no arithmetic for " + dtype_name
                                             : "";
      for (const char* collective : {"all_reduce", "reduce"}) {
        call_.collective = collective;
        EXPECT_EQ(refusal(call_), reason) << dtype_name;
      }
    }
  }
}

TEST_F(GlooShim, MovesEveryDtype) {
  call_.op = "none";
  for (const Dtype dtype : all_dtypes()) {
    const std::string name(to_string(dtype));
    call_.dtype = name.c_str();
    call_.element_bytes = size_of(dtype);
    for (const char* collective : {"broadcast", "gather", "all_gather", "scatter", "all_to_all", "sendrecv", "pingpong",
                                   "bandwidth", "bibandwidth", "message_rate", "send", "recv"}) {
      call_.collective = collective;
      for (call_.asynchronous = 0; call_.asynchronous < 2; ++call_.asynchronous) EXPECT_EQ(refusal(call_), "") << name;
    }
  }
}

TEST_F(GlooShim, LacksCollectives) {
  for (const char* collective : {"reduce_scatter", "scan", "exscan", "scatter_v", "reduce_scatter_v"}) {
    call_.collective = collective;
    EXPECT_EQ(refusal(call_), std::string("Gloo has no ") + collective);
  }
  call_.collective = "gather_v";
  EXPECT_EQ(refusal(call_), "Gloo is packaged without the header of its gatherv");
}

TEST_F(GlooShim, SendsInPlaceOnlyWhatNothingOverwrites) {
  call_.in_place = 1;
  for (const Collective collective : every_collective()) {
    const std::string name(to_string(collective));
    call_.collective = name.c_str();
    call_.op = is_reducing(collective) ? "max" : "none";
    call_.in_place = 0;
    const std::string out_of_place = refusal(call_);
    call_.in_place = 1;
    const bool overwrites = collective == Collective::all_to_all || collective == Collective::all_to_all_v ||
                            collective == Collective::sendrecv || collective == Collective::bibandwidth;
    EXPECT_EQ(refusal(call_),
              overwrites ? "Gloo has no " + name + " in place: messages would arrive in what is still to be sent"
                         : out_of_place);
  }
}

TEST_F(GlooShim, TakesAnyCountThatBytesCanBeCountedOf) {
  call_.count = 0;
  EXPECT_EQ(refusal(call_), "");
  call_.count = 2305843009213693951;
  EXPECT_EQ(refusal(call_), "");
  call_.count = 2305843009213693952;
  EXPECT_THAT(refusal(call_), AllOf(HasSubstr("2305843009213693952"), HasSubstr("0 to 2305843009213693951")));
  call_.count = -1;
  EXPECT_THAT(refusal(call_), HasSubstr("count -1"));
  call_.collective = "all_gather";
  call_.count = 0;
  EXPECT_EQ(refusal(call_), "Gloo's allgather divides by the size of its output: it takes 1 element or more");
}

TEST_F(GlooShim, HasNoDisplacements) {
  const std::int64_t counts[] = {3, 0, 1}, dense[] = {0, 99, 3}, with_gap[] = {0, 3, 4};
  call_.op = "none";
  call_.count = 3;
  call_.blocks = 3;
  call_.recv_counts = counts;
  call_.collective = "all_gather_v";
  call_.recv_displacements = dense;  // an empty block lies nowhere
  EXPECT_EQ(refusal(call_), "");
  call_.recv_displacements = with_gap;
  EXPECT_EQ(refusal(call_), "Gloo has no displacements: each block follows the one before it");
  call_.collective = "all_to_all_v";
  call_.recv_displacements = dense;
  call_.send_counts = counts;
  call_.send_displacements = with_gap;
  EXPECT_EQ(refusal(call_), "Gloo has no displacements: each block follows the one before it");
  call_.send_displacements = dense;
  EXPECT_EQ(refusal(call_), "");
}

TEST_F(GlooShim, RefusesNamesThatItDoesNotKnow) {
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

TEST_F(GlooShim, NeedsAnExchangeToMeet) {
  EXPECT_EQ(gloo().start_command().value(), "");
  const Status opened = gloo().open({.ranks = 1, .rank = 0, .handle = nullptr}, TuttiBackendJoin{});
  EXPECT_THAT(opened.message(), HasSubstr("Gloo's ranks meet by an exchange, and there is none"));
}

TEST_F(GlooShim, DescribesItselfBeforeItIsOpen) {
  const auto json = nlohmann::json::parse(gloo().describe().value());
  EXPECT_EQ(json.at("library"), "Gloo");
  EXPECT_THAT(json.at("version").get<std::string>(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(json.at("transport"), "");
}

}  // namespace
}  // namespace tutti::harness
