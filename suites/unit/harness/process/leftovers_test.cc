// SPDX-License-Identifier: Apache-2.0
#include "harness/process/leftovers.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tutti::harness::process {
namespace {

TEST(Leftovers, OnlyWhatIsNewAndMappedByNobodyIsRemoved) {
  std::string folder = std::filesystem::temp_directory_path() / "leftovers-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto make = [&](const char* name) {
    std::string path = folder + "/" + name;
    std::ofstream(path) << "some bytes";
    return path;
  };
  const std::string earlier = make("shared_1");
  const Leftovers leftovers({folder + "/shared_"});
  const std::string later = make("shared_2"), mapped = make("shared_3"), other = make("another");
  const int file = ::open(mapped.c_str(), O_RDONLY);
  void* const memory = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  leftovers.remove();
  EXPECT_TRUE(std::filesystem::exists(earlier));
  EXPECT_FALSE(std::filesystem::exists(later));
  EXPECT_TRUE(std::filesystem::exists(mapped));
  EXPECT_TRUE(std::filesystem::exists(other));
  ::munmap(memory, 1);
  ::close(file);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti::harness::process
