// SPDX-License-Identifier: Apache-2.0
// Why there is no GPU or no NCCL, in the words that `tutti list` shows; and where both are looked for.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/backends/nccl/library.h"
#include "impl/cuda/library.h"
#include "impl/cuda/runtime.h"

namespace tutti::backend_nccl {
namespace {

using cuda::FoundRuntime;
using cuda::Lack;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kDoubles = TUTTI_DOUBLES;

/// The environment of a test, and nothing else of the real one but what the doubles read.
class NcclLibraries : public testing::Test {
 protected:
  void TearDown() override {
    variables().clear();
    for (const char* const name :
         {"TUTTI_DOUBLE_DEVICES", "TUTTI_DOUBLE_DRIVER", "TUTTI_DOUBLE_ERROR", "TUTTI_DOUBLE_NCCL"})
      ::unsetenv(name);
  }
  static std::map<std::string, std::string>& variables() {
    static std::map<std::string, std::string> all;
    return all;
  }
  static char* lookup(const char* name) {
    const auto found = variables().find(name);
    return found == variables().end() ? nullptr : found->second.data();
  }
  static FoundRuntime runtime(const std::string& path) {
    variables()["TUTTI_CUDART"] = path;
    return cuda::find_runtime(lookup);
  }
  static FoundNccl nccl(const std::string& path) {
    variables()["TUTTI_NCCL"] = path;
    return find_nccl(lookup);
  }
};

TEST_F(NcclLibraries, ARuntimeSaysItsVersionsAndItsGpus) {
  ::setenv("TUTTI_DOUBLE_DEVICES", "3", 1);
  const FoundRuntime found = runtime(kDoubles + "/libcudart.so");
  ASSERT_NE(found.runtime, nullptr) << found.why;
  EXPECT_EQ(found.lack, Lack::nothing);
  EXPECT_EQ(found.runtime->path, kDoubles + "/libcudart.so");
  EXPECT_EQ(found.runtime->version, 13000);
  EXPECT_EQ(found.runtime->driver_version, 13000);
  EXPECT_EQ(found.runtime->devices, 3);
  EXPECT_EQ(cuda::version_text(12040), "12.4");
  EXPECT_EQ(cuda::version_text(12100), "12.10");
}

TEST_F(NcclLibraries, AnErrorOfCudaHasItsNameAndItsText) {
  const FoundRuntime found = runtime(kDoubles + "/libcudart.so");
  ASSERT_NE(found.runtime, nullptr) << found.why;
  EXPECT_EQ(found.runtime->text_of("cudaMalloc", 2),
            "cudaMalloc failed: cudaErrorMemoryAllocation, as the double has it");
}

TEST_F(NcclLibraries, NoRuntimeWhereTheVariableNamesNone) {
  const FoundRuntime found = runtime("/nowhere/libcudart.so");
  EXPECT_EQ(found.lack, Lack::library);
  EXPECT_THAT(found.why, StartsWith("TUTTI_CUDART names /nowhere/libcudart.so, which cannot be loaded: "));
  EXPECT_THAT(found.why, EndsWith("; install CUDA's runtime (pip install nvidia-cuda-runtime-cu12), or name its "
                                  "libcudart.so in TUTTI_CUDART"));
  EXPECT_FALSE(found.is_without_gpu) << "who names a file expects a GPU";
}

TEST_F(NcclLibraries, NoDriver) {
  ::setenv("TUTTI_DOUBLE_DRIVER", "0", 1);
  const FoundRuntime found = runtime(kDoubles + "/libcudart.so");
  EXPECT_EQ(found.lack, Lack::driver);
  EXPECT_EQ(found.why, "no NVIDIA driver is loaded, so " + kDoubles +
                           "/libcudart.so finds no GPU; install one, or give " +
                           "the container its GPUs (docker run --gpus all)");
}

TEST_F(NcclLibraries, ADriverThatIsTooOld) {
  ::setenv("TUTTI_DOUBLE_DRIVER", "12040", 1);
  const FoundRuntime found = runtime(kDoubles + "/libcudart.so");
  EXPECT_EQ(found.lack, Lack::newer_driver);
  EXPECT_EQ(found.why, "the NVIDIA driver is too old: it has CUDA 12.4, and " + kDoubles +
                           "/libcudart.so needs 13.0; " +
                           "update the driver, or name an older runtime in TUTTI_CUDART");
  EXPECT_FALSE(found.is_without_gpu);
}

TEST_F(NcclLibraries, NoDevice) {
  ::setenv("TUTTI_DOUBLE_DEVICES", "0", 1);
  EXPECT_EQ(runtime(kDoubles + "/libcudart.so").lack, Lack::device);
  EXPECT_THAT(cuda::find_runtime(lookup).why, HasSubstr("no GPU for this process (CUDA_VISIBLE_DEVICES is not set); "));
  variables()["CUDA_VISIBLE_DEVICES"] = "";
  EXPECT_EQ(cuda::find_runtime(lookup).why,
            "the NVIDIA driver has no GPU for this process (CUDA_VISIBLE_DEVICES is ''); "
            "nvidia-smi -L lists those of the machine");
}

TEST_F(NcclLibraries, ARuntimeThatDoesNotStart) {
  ::setenv("TUTTI_DOUBLE_ERROR", "2", 1);
  const FoundRuntime found = runtime(kDoubles + "/libcudart.so");
  EXPECT_EQ(found.lack, Lack::other);
  EXPECT_EQ(found.why,
            "CUDA does not start: cudaGetDeviceCount failed: cudaErrorMemoryAllocation, as the double has it (" +
                kDoubles + "/libcudart.so); nvidia-smi shows whether the driver works");
  EXPECT_FALSE(found.is_without_gpu);
}

TEST_F(NcclLibraries, ARuntimeThatLacksAFunctionIsRefusedByItsName) {
  const FoundRuntime found = runtime(kDoubles + "/libcudart_partial.so");
  EXPECT_EQ(found.lack, Lack::symbol);
  EXPECT_EQ(found.why, kDoubles + "/libcudart_partial.so has no cudaGraphLaunch: it is not a CUDA runtime of version " +
                           "11.4 or later; name another libcudart.so in TUTTI_CUDART");
}

TEST_F(NcclLibraries, TheRealRuntimeSaysWhatIsMissing) {
  const FoundRuntime found = cuda::find_runtime(lookup);
  if (found.lack == Lack::library) GTEST_SKIP() << "there is no libcudart here: " << found.why;
  if (found.lack == Lack::nothing) GTEST_SKIP() << "there is a GPU here";
  EXPECT_TRUE(found.lack == Lack::driver || found.lack == Lack::newer_driver || found.lack == Lack::device)
      << found.why;
  EXPECT_THAT(found.why, HasSubstr("NVIDIA driver"));
}

TEST_F(NcclLibraries, ANcclSaysItsVersion) {
  const FoundNccl found = nccl(kDoubles + "/libnccl.so");
  ASSERT_NE(found.nccl, nullptr) << found.why;
  EXPECT_EQ(found.nccl->version, 22809);
  EXPECT_NE(found.nccl->ncclAlltoAll, nullptr);
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(21805), "2.18.5");
  EXPECT_EQ(version_text(2708), "2.7.8");
}

TEST_F(NcclLibraries, AnOldNcclMayLackLaterFunctions) {
  ::setenv("TUTTI_DOUBLE_NCCL", "21805", 1);
  const FoundNccl found = nccl(kDoubles + "/libnccl_old.so");
  ASSERT_NE(found.nccl, nullptr) << found.why;
  EXPECT_EQ(found.nccl->ncclAlltoAll, nullptr);
  EXPECT_EQ(found.nccl->ncclCommWindowRegister, nullptr);
}

TEST_F(NcclLibraries, AnNcclThatIsTooOldIsRefusedByItsVersionAndPath) {
  ::setenv("TUTTI_DOUBLE_NCCL", "21701", 1);
  const FoundNccl found = nccl(kDoubles + "/libnccl.so");
  EXPECT_EQ(found.nccl, nullptr);
  EXPECT_EQ(found.why, "NCCL 2.17.1 is too old (" + kDoubles + "/libnccl.so): 2.18 is the first that splits " +
                           "communicators; name a newer one in TUTTI_NCCL");
}

TEST_F(NcclLibraries, AnNcclThatLacksAFunctionIsRefusedByItsName) {
  const FoundNccl found = nccl(kDoubles + "/libnccl_partial.so");
  EXPECT_EQ(found.nccl, nullptr);
  EXPECT_EQ(found.why, kDoubles + "/libnccl_partial.so, NCCL 2.28.9, has no ncclCommAbort: it is not a whole NCCL of " +
                           "version 2.18 or later; name another one in TUTTI_NCCL");
  EXPECT_THAT(nccl(kDoubles + "/libcudart.so").why,
              StartsWith(kDoubles + "/libcudart.so has no ncclGetVersion: it is not a whole NCCL"));
}

TEST_F(NcclLibraries, NoNcclWhereTheVariableNamesNone) {
  EXPECT_THAT(nccl("/nowhere/libnccl.so").why,
              AllOf(StartsWith("TUTTI_NCCL names /nowhere/libnccl.so, which cannot be loaded: "),
                    EndsWith("; install NCCL (pip install nvidia-nccl-cu12), or name its libnccl.so.2 in TUTTI_NCCL")));
}

/// A folder with installed Pythons.
class PlacesOfLibraries : public NcclLibraries {
 protected:
  PlacesOfLibraries() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-places-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~PlacesOfLibraries() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path packages(const std::string& below) {
    const auto path = folder_ / below;
    std::filesystem::create_directories(path);
    return path;
  }
  void install(const std::filesystem::path& packages, const std::string& wheel, const std::string& file) {
    std::filesystem::create_directories(packages / wheel);
    std::filesystem::copy_file(kDoubles + "/libcudart.so", packages / wheel / file);
  }
  static cuda::LoadedLibrary load() {
    constexpr const char* kFiles[] = {"libtutti_none.so.13", "libtutti_none.so.12"};
    return cuda::load_library({.variable = "TUTTI_NONE", .files = kFiles, .folder_of_wheels = "nvidia/*/lib"}, lookup);
  }

  std::filesystem::path folder_;
};

TEST_F(PlacesOfLibraries, AreThoseOfEveryInstalledPython) {
  const auto environment = packages("venv/lib/python3.11/site-packages"),
             conda = packages("conda/lib/python3.9/site-packages"),
             home = packages("home/.local/lib/python3.12/site-packages"), path = packages("python"),
             found = packages("opt/lib64/python3.10/site-packages");
  packages("opt/bin");
  std::ofstream(folder_ / "opt/bin/python3") << "#!/bin/sh\n";
  std::filesystem::permissions(folder_ / "opt/bin/python3", std::filesystem::perms::owner_all);
  variables() = {{"VIRTUAL_ENV", folder_ / "venv"},
                 {"CONDA_PREFIX", folder_ / "conda"},
                 {"HOME", folder_ / "home"},
                 {"PYTHONPATH", path.string() + ":/nowhere:" + path.string()},
                 {"PATH", "/nowhere:" + (folder_ / "opt/bin").string()}};
  std::vector<std::string> folders = cuda::folders_of_packages(lookup);
  std::erase_if(folders, [&](const std::string& each) { return !each.starts_with(folder_.string()); });  // the system's
  EXPECT_THAT(folders,
              testing::ElementsAre(path.string(), environment.string(), conda.string(), home.string(), found.string()));
}

TEST_F(PlacesOfLibraries, HaveLibrariesInWheels) {
  install(packages("venv/lib/python3.11/site-packages"), "nvidia/cuda_none/lib", "libtutti_none.so.12");
  install(packages("home/.local/lib/python3.12/site-packages"), "nvidia/cu13/lib", "libtutti_none.so.13");
  variables() = {{"VIRTUAL_ENV", folder_ / "venv"}, {"HOME", folder_ / "home"}};
  const cuda::LoadedLibrary library = load();
  EXPECT_NE(library.handle, nullptr);
  EXPECT_EQ(library.path, folder_ / "venv/lib/python3.11/site-packages/nvidia/cuda_none/lib/libtutti_none.so.12");
  const auto others = packages("conda/lib/python3.9/site-packages");
  for (const char* const wheel : {"nvidia/cu13/lib", "nvidia/cu14/lib"}) install(others, wheel, "libtutti_none.so.13");
  variables() = {{"CONDA_PREFIX", folder_ / "conda"}};
  EXPECT_EQ(load().path, others / "nvidia/cu14/lib/libtutti_none.so.13") << "of two the later one by name";
}

TEST_F(PlacesOfLibraries, AreNamedWhereThereIsNoLibrary) {
  variables() = {{"VIRTUAL_ENV", folder_ / "venv"}};
  EXPECT_EQ(load().why_not,
            "no libtutti_none.so.13, libtutti_none.so.12 in the loader's path or in nvidia/*/lib of an "
            "installed Python");
  const auto wheel = packages("venv/lib/python3.11/site-packages/nvidia/cu13/lib");
  std::ofstream(wheel / "libtutti_none.so.13") << "this is no shared object";
  EXPECT_THAT(load().why_not,
              HasSubstr("; what is there cannot be loaded: " + (wheel / "libtutti_none.so.13").string()));
}

TEST_F(PlacesOfLibraries, TheVariableGoesFirst) {
  install(packages("venv/lib/python3.11/site-packages"), "nvidia/cu13/lib", "libtutti_none.so.13");
  variables() = {{"VIRTUAL_ENV", folder_ / "venv"}, {"TUTTI_NONE", kDoubles + "/libcudart.so"}};
  EXPECT_EQ(load().path, kDoubles + "/libcudart.so");
  variables()["TUTTI_NONE"] = "/nowhere/x.so";
  EXPECT_EQ(load().handle, nullptr) << "it is not looked for elsewhere";
}

}  // namespace
}  // namespace tutti::backend_nccl
