// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::cases {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::string_view kCell = "all_reduce/shm/float/sum/P2.processes/none/4096B/out/private/isolated";
constexpr std::string_view kCase = "all_reduce/tutti.ring/shm/float/sum/P2.processes/none/4096B/out/private/isolated";

const std::vector<std::string>& keys() {
  static const std::vector<std::string> list{"collectives", "sizes", "ranks", "ranks-as"};
  return list;
}

std::string complaint(const std::string& text) { return suite_from_toml(text, keys()).status().message(); }

TEST(Suite, HoldsSweepsAndCells) {
  const auto suite = suite_from_toml(
      "# mine\ncells = [\"" + std::string(kCell) + "\", \"" + std::string(kCase) +
          "\"]\n[[sweep]]\ncollectives = ['all_reduce', 'barrier']\nsizes = '8:64K:x8'\nranks = [2, 4]\n"
          "[[sweep]]\nsizes = 1024\n",
      keys());
  ASSERT_TRUE(suite.is_ok()) << suite.status().message();
  ASSERT_EQ(suite.value().sweeps.size(), 2U);
  EXPECT_THAT(suite.value().sweeps[0].texts,
              ElementsAre(Pair("collectives", "all_reduce,barrier"), Pair("ranks", "2,4"), Pair("sizes", "8:64K:x8")));
  EXPECT_EQ(suite.value().sweeps[1].line, 7);
  EXPECT_THAT(suite.value().sweeps[1].texts, ElementsAre(Pair("sizes", "1024")));
  ASSERT_EQ(suite.value().cells.size(), 2U);
  EXPECT_EQ(suite.value().cells[0].algorithm, "auto");
  EXPECT_EQ(suite.value().cells[1].algorithm, "ring");
  EXPECT_EQ(cell_id(suite.value().cells[0]), kCell);
  EXPECT_EQ(cell_id(suite.value().cells[1]), kCase);
}

TEST(Suite, MistakesAreNamedWithTheirLine) {
  EXPECT_THAT(complaint("[[sweep]]\nsizes = 'x'\nsize = 8\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("'size'"), HasSubstr("did you mean 'sizes'?")));
  EXPECT_THAT(complaint("\ncell = []\n"), AllOf(HasSubstr("line 2"), HasSubstr("did you mean 'cells'?")));
  EXPECT_THAT(complaint("[[sweep]]\nsizes = 1.5\n"), AllOf(HasSubstr("line 2"), HasSubstr("'sizes'")));
  EXPECT_THAT(complaint("[[sweep]]\nsizes = []\n"), AllOf(HasSubstr("line 2"), HasSubstr("empty")));
  EXPECT_THAT(complaint("[sweep]\nsizes = 8\n"), HasSubstr("[[sweep]]"));
  EXPECT_THAT(complaint("[[sweep]]\nsizes = 8\nsizes = 9\n"), HasSubstr("line 3"));
  EXPECT_THAT(complaint("cells = 'x'\n"), HasSubstr("list of ids"));
  EXPECT_THAT(complaint(""), HasSubstr("no cells"));
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Suite, KeysOfManyPartsAreRefusedBeforeTheParserSeesThem) {
  const std::string deep = "a" + repeated(".a", 200'000);
  for (const std::string& text :
       {deep + " = 1\n", "[" + deep + "]\n", "[[" + deep + "]]\n", "x = {" + deep + " = 1}\n",
        "a" + repeated(" . \"a.b\"", 200'000) + " = 1\n", "a" + repeated(".'a'", 200'000) + " = 1\n",
        "x = {k = \"\"\"\n\"\"\", " + deep + " = 1}\n", "x = {k = '''\n''''', " + deep + " = 1}\n",
        "x = {k = \"\\\"\", " + deep + " = 1}\n", "x = {k = \"\", " + deep + " = 1}\n", "#\v" + deep + " = 1\n",
        "#'\r" + deep + " = 1\n", "x = {k = \"\"\"\\\n\"\"\"\"\", " + deep + " = 1}\n"}) {
    EXPECT_THAT(complaint("\n" + text), HasSubstr("a key of more than 16 parts: keys here have one"))
        << text.substr(0, 40);
  }
  EXPECT_THAT(complaint("[[sweep]]\nsizes = 8\n\n" + deep + " = 1\n"), ::testing::StartsWith("line 4: "));
}

TEST(Suite, DotsOfStringsAndCommentsAreNoParts) {
  const std::string dots = repeated(".", 100);
  EXPECT_EQ(complaint("# " + dots + "\n[[sweep]] # '" + dots + "\nsizes = 8\n"), "");
  for (const char* quote : {"'", "\"", "\"\"\"", "'''"}) {
    EXPECT_EQ(complaint("[[sweep]]\nsizes = " + std::string(quote) + dots + quote + "\n"), "") << quote;
  }
  EXPECT_EQ(complaint("[[sweep]]\nsizes = [\"a\\\"" + dots + "\", '" + dots + "']\n"), "");
}

TEST(Suite, AByteOrderMarkIsPassedOver) { EXPECT_EQ(complaint("\xef\xbb\xbf[[sweep]]\nsizes = 8\n"), ""); }

TEST(Suite, LettersBeyondAsciiStandInLinesOfComment) {
  EXPECT_EQ(complaint("# \xc3\xa9\n  # \xc3\xa9\n[[sweep]]\nsizes = 8\n"), "");
  for (const char* text : {"[[sweep]]\nsizes = 8 # \xc3\xa9\n", "#\n'\xc3\xa9' = 8\n", "#\rcells = 7'\xcb\xbb\nx\n",
                           "\ncells = [0, {a = 1--27T87'\xcb\xbb]\n"}) {
    EXPECT_THAT(complaint(text), HasSubstr("a letter beyond ASCII")) << text;
  }
  EXPECT_THAT(complaint("\n\ncells = \xc3\xa9\n"), HasSubstr("line 3: "));
}

TEST(Suite, CellsThatDoNotExistAreNamed) {
  EXPECT_THAT(complaint("cells = [\n'all_reduce/shm/flaot/sum/P2.processes/none/4096B/out/private/isolated']\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("'flaot'"), HasSubstr("'float'")));
  EXPECT_THAT(complaint("cells = ['all_reduce']\n"), HasSubstr("'all_reduce'"));
  EXPECT_THAT(
      complaint("cells = ['all_reduce/openmpi.none/shm/float/sum/P2.processes/none/4096B/out/private/isolated']\n"),
      HasSubstr("without 'openmpi.none/'"));
}

}  // namespace
}  // namespace tutti::harness::cases
