// SPDX-License-Identifier: Apache-2.0
// The loader on real shared objects: a good one, and one each with another ABI and another name than its file.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/loader.h"

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
  EXPECT_TRUE(backend.open({.ranks = 1, .rank = 0}).is_ok());
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

TEST(LoadedBackend, TurnsItsMessagesIntoStatuses) {
  const LoadedBackend backend = LoadedBackend::load("fixture", kDirectories).value();
  const Status open = backend.open({.ranks = 4, .rank = 0});
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
