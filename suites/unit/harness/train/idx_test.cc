// SPDX-License-Identifier: Apache-2.0
// MNIST's files are read as they are, and refused by name where they are not.
#include "harness/train/idx.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Idx : public testing::Test {
 protected:
  Idx() {
    std::string pattern = testing::TempDir() + "tutti-idx-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Idx() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::vector<std::uint32_t>& head, const std::string& data) const {
    std::ofstream file(path(name), std::ios::binary);
    for (const std::uint32_t word : head) {
      for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(word >> static_cast<unsigned>(shift)));
    }
    file << data;
  }
  void write_images(const std::vector<std::uint32_t>& head, std::size_t bytes) const {
    write("i", head, std::string(bytes, '\x7f'));
  }
  [[nodiscard]] std::string refusal() const {
    const auto read = read_idx(path("i"), path("l"), 100);
    EXPECT_EQ(read.status().code(), Code::invalid_argument);
    return std::string(read.status().message());
  }

  std::string folder_;
};

TEST_F(Idx, ReadsTheFirstImages) {
  write("i", {0x803, 3, 28, 28}, std::string(784, '\0') + std::string(784, '\xff') + std::string(784, '\x05'));
  write("l", {0x801, 3}, std::string("\x07\x00\x09", 3));
  const auto two = read_idx(path("i"), path("l"), 2);
  ASSERT_TRUE(two.is_ok()) << two.status().message();
  EXPECT_THAT(two.value().labels, ElementsAre(7, 0));
  EXPECT_EQ(two.value().pixels.size(), 2 * kPixels);
  EXPECT_EQ(two.value().image(1)[783], 255);
}

TEST_F(Idx, RefusesWhatItIsNot) {
  write("l", {0x801, 2}, std::string(2, '\x01'));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/i'"), HasSubstr("No such file")));
  write_images({}, 0);
  EXPECT_THAT(refusal(), HasSubstr("has 0 bytes"));
  write_images({0x801, 2, 28, 28}, 2 * kPixels);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("0x00000801"), HasSubstr("0x00000803")));
  write_images({0x803, 2, 28, 29}, 2 * kPixels);
  EXPECT_THAT(refusal(), HasSubstr("28 x 29"));
  write_images({0x803, 0, 28, 28}, 0);
  EXPECT_THAT(refusal(), HasSubstr("1 to 100000"));
  write_images({0x803, 0xffffffff, 28, 28}, 10);
  EXPECT_THAT(refusal(), HasSubstr("4294967295 images"));
  for (const std::size_t bytes : {2 * kPixels - 1, 2 * kPixels + 1}) {
    write_images({0x803, 2, 28, 28}, bytes);
    EXPECT_THAT(refusal(), HasSubstr("it has to have 1584"));
  }
  write_images({0x803, 1, 28, 28}, kPixels);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("2 labels"), HasSubstr("1 images")));
  write("l", {0x801, 1}, "\x0a");
  EXPECT_THAT(refusal(), HasSubstr("label 0 is 10"));
  std::filesystem::remove(path("i"));
  std::filesystem::create_directory(path("i"));
  EXPECT_THAT(refusal(), HasSubstr("no regular file"));
}

TEST_F(Idx, SaysWhatAFolderLacks) {
  EXPECT_THAT(std::string(read_mnist(folder_, 1, 1).status().message()), HasSubstr("train-images-idx3-ubyte"));
  write("train-images-idx3-ubyte.gz", {}, "");
  EXPECT_THAT(std::string(read_mnist(folder_, 1, 1).status().message()), HasSubstr("gunzip"));
}

TEST_F(Idx, ReadsAFolder) {
  for (const std::string stem : {"train", "t10k"}) {
    write(stem + ".images-idx3-ubyte", {0x803, 2, 28, 28}, std::string(2 * kPixels, 'a'));
    write(stem + "-images.idx3-ubyte", {0x803, 2, 28, 28}, std::string(2 * kPixels, 'a'));
    write(stem + "-labels-idx1-ubyte", {0x801, 2}, std::string(2, '\x03'));
  }
  const auto sets = read_mnist(folder_, 10, 1);
  ASSERT_TRUE(sets.is_ok()) << sets.status().message();
  EXPECT_EQ(sets.value().learned.count(), 2U);
  EXPECT_EQ(sets.value().held_out.count(), 1U);
}

}  // namespace
}  // namespace tutti::harness::train
