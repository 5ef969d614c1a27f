// SPDX-License-Identifier: Apache-2.0
// Finding backends, without loading any; suites/backends loads real ones.
#include "harness/backends/loader.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::backends {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Backends : public testing::Test {
 protected:
  Backends() : root_(std::filesystem::temp_directory_path() / fmt::format("tutti_loader_test_{}", getpid())) {
    std::filesystem::create_directories(root_);
  }
  ~Backends() override { std::filesystem::remove_all(root_); }

  /// A directory with these files, none of which is a shared object.
  std::string directory(const std::string& name, const std::vector<std::string>& files) {
    std::filesystem::create_directories(root_ / name);
    for (const std::string& file : files) std::ofstream(root_ / name / file) << "text";
    return (root_ / name).string();
  }

 private:
  std::filesystem::path root_;
};

TEST_F(Backends, AreSoughtInTheVariablesDirectoriesThenBesideTheProgram) {
  EXPECT_THAT(backend_directories("", "/p"), ElementsAre("/p"));
  EXPECT_THAT(backend_directories("/a:/b", "/p"), ElementsAre("/a", "/b", "/p"));
  EXPECT_THAT(backend_directories(":/a::", "/p"), ElementsAre("/a", "/p"));
}

TEST_F(Backends, AreListedOnceAndSortedWithoutBeingOpened) {
  const std::vector<std::string> directories{
      directory("a", {"libtutti_backend_openmpi.so", "libtutti_backend_.so", "libother.so"}), "/nowhere/at/all",
      directory("b", {"libtutti_backend_openmpi.so", "libtutti_backend_gloo.so", "libtutti_backend_x.so.1"})};
  EXPECT_THAT(list_backends(directories), ElementsAre("gloo", "openmpi"));
}

TEST_F(Backends, OfUnknownNameGiveTheNearestRightOne) {
  const std::vector<std::string> directories{
      directory("a", {"libtutti_backend_openmpi.so", "libtutti_backend_gloo.so"})};
  const Status status = LoadedBackend::load("opnmpi", directories).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'opnmpi'"), HasSubstr("did you mean 'openmpi'?"), HasSubstr("tutti")));
  EXPECT_THAT(LoadedBackend::load("ompi", directories).status().message(), HasSubstr("did you mean 'openmpi'?"));
}

TEST_F(Backends, WhereThereAreNoneSayWhatWasSoughtWhere) {
  const std::vector<std::string> directories{directory("empty", {})};
  const Status status = LoadedBackend::load("openmpi", directories).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("libtutti_backend_openmpi.so"), HasSubstr(directories.front())));
}

TEST_F(Backends, ThatCannotBeLoadedSayWhy) {
  const std::vector<std::string> directories{directory("a", {"libtutti_backend_openmpi.so"})};
  const Status status = LoadedBackend::load("openmpi", directories).status();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cannot be loaded"), HasSubstr("libtutti_backend_openmpi.so")));
}

TEST_F(Backends, AreNeverSoughtOutsideTheDirectories) {
  const std::string inner = directory("a", {});
  directory(".", {"libtutti_backend_openmpi.so"});
  EXPECT_EQ(LoadedBackend::load("../libtutti_backend_openmpi", std::vector{inner}).status().code(),
            Code::invalid_argument);
}

}  // namespace
}  // namespace tutti::harness::backends
