// SPDX-License-Identifier: Apache-2.0
// The loader on real shared objects: a good one, and one each with another ABI and another name than its file.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/loader.h"
#include "harness/backends/reference_group.h"

namespace tutti::harness {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kDirectories{TUTTI_FIXTURES};

TEST(LoadedBackend, IsFoundByListAndByName) {
  EXPECT_THAT(list_backends(kDirectories), ElementsAre("fixture", "old", "renamed"));
  const auto backend = LoadedBackend::load("fixture", kDirectories);
  ASSERT_TRUE(backend.is_ok()) << backend.status().message();
  EXPECT_EQ(backend.value().name(), "fixture");
  EXPECT_THAT(backend.value().path(), HasSubstr("libtutti_backend_fixture.so"));
}

TEST(LoadedBackend, RunsWhatWasPrepared) {
  const LoadedBackend backend = LoadedBackend::load("fixture", kDirectories).value();
  EXPECT_TRUE(backend.open({.ranks = 1, .rank = 0}, {}).is_ok());
  const std::vector<float> from{1, 2, 3};
  std::vector<float> to(3);
  TuttiBackendCall call{.collective = "broadcast",
                        .dtype = "float",
                        .op = "none",
                        .root = 0,
                        .in_place = 0,
                        .count = 3,
                        .element_bytes = 4,
                        .send = from.data(),
                        .recv = to.data()};
  const auto handle = backend.prepare(call);
  ASSERT_TRUE(handle.is_ok());
  EXPECT_TRUE(backend.run(handle.value()).is_ok());
  EXPECT_EQ(to, from);
  backend.release(handle.value());
}

TEST(LoadedBackend, CompletesWhatWasPosted) {
  const LoadedBackend backend = LoadedBackend::load("fixture", kDirectories).value();
  const std::vector<float> from{1, 2, 3};
  std::vector<float> to(3);
  TuttiBackendCall call{.collective = "broadcast",
                        .dtype = "float",
                        .op = "none",
                        .count = 3,
                        .element_bytes = 4,
                        .send = from.data(),
                        .recv = to.data(),
                        .asynchronous = 1};
  const auto handle = backend.prepare(call);
  ASSERT_TRUE(handle.is_ok());
  EXPECT_TRUE(backend.post(handle.value()).is_ok());
  EXPECT_FALSE(backend.test(handle.value()).value());
  EXPECT_EQ(to, std::vector<float>(3)) << "not yet";
  EXPECT_TRUE(backend.test(handle.value()).value());
  EXPECT_EQ(to, from);
  to.assign(3, 0);
  EXPECT_TRUE(backend.post(handle.value()).is_ok());
  EXPECT_TRUE(backend.wait(handle.value()).is_ok());
  EXPECT_EQ(to, from);
  backend.release(handle.value());
}

TEST(LoadedBackend, MakesGroupsAndFreesThem) {
  const LoadedBackend backend = LoadedBackend::load("fixture", kDirectories).value();
  const auto group = backend.split(nullptr, 0, 7);
  ASSERT_TRUE(group.is_ok());
  EXPECT_EQ(group.value().ranks, 1);
  EXPECT_EQ(*static_cast<const std::int32_t*>(group.value().handle), 7) << "the key came through";
  EXPECT_TRUE(backend.free_group(group.value()).is_ok());
  EXPECT_EQ(backend.free_group({}).message(), "backend fixture: there is no group to free");
  EXPECT_EQ(backend.split(nullptr, -1, 0).value().ranks, 0) << "in none";
  EXPECT_EQ(backend.split(nullptr, 1001, 0).status().message(), "backend fixture: colours end at 1000");
  EXPECT_EQ(backend.split(nullptr, 1001, 0).status().code(), Code::io);
}

class OneRankOfTheFixture : public testing::Test {
 protected:
  LoadedBackend library_ = LoadedBackend::load("fixture", kDirectories).value();
  ReferenceGroup world_{library_, {.ranks = 1, .rank = 0, .handle = nullptr}, [](Buffers) { return plain_memory(); }};
  Operation what_{.problem = {.collective = Collective::broadcast, .ranks = 1}, .count = 3};
  std::vector<float> from_{1, 2, 3}, to_ = std::vector<float>(3);
};
using ReferenceGroups = OneRankOfTheFixture;

TEST_F(ReferenceGroups, PostAndTestAndWaitForCalls) {
  for (const bool waits : {false, true}) {
    to_.assign(3, 0);
    const auto pending = world_.post({.what = what_, .input = from_.data(), .output = to_.data()});
    ASSERT_TRUE(pending.is_ok()) << pending.status().message();
    EXPECT_FALSE(pending.value()->test().value());
    const Status waited = waits ? pending.value()->wait(std::chrono::seconds(1)) : Status();
    EXPECT_TRUE(waited.is_ok());
    EXPECT_TRUE(pending.value()->test().value());
    EXPECT_TRUE(pending.value()->test().value()) << "and stays complete";
    EXPECT_EQ(to_, from_);
  }
}

TEST_F(ReferenceGroups, SayWhyTheyDoNotSupportACall) {
  EXPECT_TRUE(world_.supports({.what = what_}).is_ok());
  what_.problem.collective = Collective::reduce;
  EXPECT_EQ(world_.supports({.what = what_}).message(), "the fixture only broadcasts");
  EXPECT_EQ(world_.post({.what = what_}).status().code(), Code::unavailable);
  EXPECT_FALSE(world_.post_send({.buffer = from_.data(), .count = 3, .dtype = Dtype::f32, .peer = 0}).is_ok());
}

TEST_F(ReferenceGroups, MakeGroupsOfColoursAndOfLists) {
  const auto made_by = [](Result<std::unique_ptr<Formation>> formation) {
    EXPECT_TRUE(formation.is_ok() && formation.value()->test().value());
    return formation.value()->take();
  };
  EXPECT_EQ(made_by(world_.post_split(-1, 0)), nullptr);
  EXPECT_EQ(made_by(world_.post_new_group({})), nullptr);
  const auto group = made_by(world_.post_new_group(std::vector{0}));
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->ranks(), 1);
  EXPECT_TRUE(group->free().is_ok());
  EXPECT_TRUE(world_.free().is_ok()) << "the world is not given back";
}

TEST(LoadedBackend, TurnsItsMessagesIntoStatuses) {
  const LoadedBackend backend = LoadedBackend::load("fixture", kDirectories).value();
  const Status open = backend.open({.ranks = 4, .rank = 0}, {});
  EXPECT_EQ(open.code(), Code::unavailable);
  EXPECT_EQ(open.message(), "backend fixture: there is 1 rank here, not 4");
  TuttiBackendCall call{};
  call.collective = "barrier";
  EXPECT_EQ(backend.supports(call).code(), Code::unavailable);
  EXPECT_EQ(backend.supports(call).message(), "the fixture only broadcasts");
  EXPECT_EQ(backend.prepare(call).status().message(), "backend fixture: the fixture only broadcasts");
  call.collective = "broadcast";
  EXPECT_TRUE(backend.supports(call).is_ok());
  const auto handle = backend.prepare(call);
  EXPECT_EQ(backend.run(handle.value()).code(), Code::io);
  EXPECT_EQ(backend.run(handle.value()).message(), "backend fixture: nothing to copy");
  backend.release(handle.value());
  EXPECT_EQ(backend.close().message(), "backend fixture: the fixture never closes");
  EXPECT_THAT(backend.describe().value(), HasSubstr("\"library\": \"fixture\""));
}

TEST(LoadedBackend, IsRefusedWithAnotherAbiNamingBoth) {
  const auto backend = LoadedBackend::load("old", kDirectories);
  EXPECT_EQ(backend.status().code(), Code::unavailable);
  EXPECT_THAT(backend.status().message(),
              AllOf(HasSubstr("ABI 77"), HasSubstr(fmt::format("needs {}", TUTTI_BACKEND_ABI)),
                    HasSubstr("scripts/build-backend")));
}

TEST(LoadedBackend, IsRefusedUnderAnotherNameThanItsOwn) {
  EXPECT_THAT(LoadedBackend::load("renamed", kDirectories).status().message(),
              HasSubstr("libtutti_backend_elsewhere.so"));
}

}  // namespace
}  // namespace tutti::harness
