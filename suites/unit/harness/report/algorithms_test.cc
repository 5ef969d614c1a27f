// SPDX-License-Identifier: Apache-2.0
#include "harness/report/algorithms.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness {
namespace {

TEST(AlgorithmsTable, TheCommittedDocumentEndsWithWhatTheRegistryGenerates) {
  std::filesystem::path root = std::filesystem::absolute(__FILE__);
  for (int level = 0; level < 5; ++level) root = root.parent_path();  // suites/unit/harness/report/<this file>
  std::ifstream file(root / "impl" / "algorithms" / "README.md");
  const std::string document{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(document, testing::EndsWith(algorithms_markdown())) << "the table is now:\n" << algorithms_markdown();
}

}  // namespace
}  // namespace tutti::harness
