// SPDX-License-Identifier: Apache-2.0
#include "harness/report/algorithms.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::report {
namespace {

TEST(AlgorithmsTable, TheCommittedDocumentEndsWithWhatTheRegistryGenerates) {
  std::ifstream file(std::filesystem::path(TUTTI_SOURCE_DIR) / "impl" / "algorithms" / "README.md");
  const std::string document{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(document, testing::EndsWith(algorithms_markdown())) << "the table is now:\n" << algorithms_markdown();
}

}  // namespace
}  // namespace tutti::harness::report
