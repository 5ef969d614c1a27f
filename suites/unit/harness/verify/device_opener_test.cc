// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/device_opener.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::verify {
namespace {

using testing::HasSubstr;

/// A folder that is removed with its content.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-opener-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::vector<std::string> list() const { return {"/nowhere", path_.string()}; }
  [[nodiscard]] std::filesystem::path object() const { return path_ / "libtutti_device_cuda.so"; }

 private:
  std::filesystem::path path_;
};

TEST(GpuRunner, WithoutTheObjectThereIsNoneAndNoError) {
  const Folder folder;
  const auto runner = open_gpu_runner(folder.list(), 0);
  ASSERT_TRUE(runner.is_ok());
  EXPECT_EQ(runner.value(), nullptr);
  EXPECT_EQ(gpu_verifier(folder.list(), 0), nullptr);
}

TEST(GpuRunner, AnObjectThatCannotBeLoadedIsToldByItsPath) {
  const Folder folder;
  std::ofstream(folder.object()) << "no object";
  const Status status = open_gpu_runner(folder.list(), 0).status();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.object().string() + " cannot be loaded: "));
  EXPECT_EQ(gpu_verifier(folder.list(), 0), nullptr);
}

TEST(GpuRunner, AnObjectWithoutAVerifierIsOfAnotherBuild) {
  const Folder folder;
  std::error_code ignored;
  for (const char* const library : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"}) {
    if (std::filesystem::exists(library)) std::filesystem::copy_file(library, folder.object(), ignored);
  }
  if (!std::filesystem::exists(folder.object())) GTEST_SKIP() << "no libm.so.6 in the usual places";
  const Status status = open_gpu_runner(folder.list(), 0).status();
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verifies for another build of this program: build it again"));
}

}  // namespace
}  // namespace tutti::harness::verify
