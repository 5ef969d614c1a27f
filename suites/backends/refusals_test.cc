// SPDX-License-Identifier: Apache-2.0
// What the MPI shim refuses, and why, asked before MPI_Init: a row that is `skipped` prints these words.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"

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

TEST_F(MpiShim, RefusesAvg) {
  call_.op = "avg";
  EXPECT_EQ(refusal(call_), "MPI has no avg");
}

TEST_F(MpiShim, RefusesArithmeticOnBfloat16) {
  call_.dtype = "bfloat16";
  call_.element_bytes = 2;
  EXPECT_EQ(refusal(call_), "MPI has no arithmetic for bfloat16");
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

TEST_F(MpiShim, RefusesNamesThatItDoesNotKnow) {
  call_.collective = "gather";
  EXPECT_THAT(refusal(call_), HasSubstr("collective 'gather'"));
  call_.collective = "all_reduce";
  call_.dtype = "double";
  EXPECT_THAT(refusal(call_), HasSubstr("dtype 'double'"));
  call_.dtype = "float";
  call_.op = "prod";
  EXPECT_THAT(refusal(call_), HasSubstr("op 'prod'"));
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
