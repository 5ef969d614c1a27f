// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/gallery.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "harness/draw/columns.h"
#include "harness/draw/names.h"
#include "harness/draw/story.h"

namespace tutti::harness::draw {
namespace {

TEST(Gallery, TheCommittedPicturesAreThoseThatAreDrawn) {
  const std::filesystem::path folder = std::filesystem::path(TUTTI_SOURCE_DIR) / "impl" / "algorithms";
  std::set<std::filesystem::path> wanted;
  const auto drawn = gallery();
  ASSERT_TRUE(drawn.is_ok()) << drawn.status().message();
  EXPECT_EQ(drawn.value().size(), all_algorithms().size());
  for (const Shown& one : drawn.value()) {
    std::ifstream file(folder / one.path);
    const std::string committed{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_TRUE(committed == one.svg) << one.path << " is stale: scripts/figures remakes it";
    wanted.insert(folder / one.path);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".svg") continue;
    EXPECT_TRUE(wanted.contains(entry.path())) << entry.path() << " is left over";
  }
}

TEST(Gallery, ThePageShowsEveryPicture) {
  const auto drawn = gallery().value();
  const std::string page = gallery_page(drawn);
  for (const Shown& one : drawn) EXPECT_NE(page.find("src=\"" + one.path + "\""), std::string::npos) << one.path;
}

TEST(Columns, FitATerminal) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (int ranks = 2; ranks <= 80; ranks += ranks < kMostDrawn ? 1 : 32) {
      const auto text =
          drawn_text({.algorithm = *algorithm, .problem = {.collective = algorithm->collective, .ranks = ranks}});
      ASSERT_TRUE(text.is_ok()) << text.status().message();
      std::istringstream lines(text.value());
      for (std::string line; std::getline(lines, line);)
        ASSERT_LE(line.size(), kTerminal)
            << to_string(algorithm->collective) << " " << algorithm->name << " P=" << ranks << "\n"
            << line;
    }
  }
}

TEST(Columns, OfABroadcastWordForWord) {
  const Problem problem{.collective = Collective::broadcast, .ranks = 3, .root = 1};
  EXPECT_EQ(
      drawn_text({.algorithm = *find_algorithm(Collective::broadcast, "knomial").value(), .problem = problem}).value(),
      "broadcast knomial on 3 ranks, root 1\n"
      "4-nomial tree over channels; ceil(log4 P) rounds\n"
      "\n"
      "         start   round 1  end\n"
      "rank 0   .       data     data\n"
      "rank 1   data    data     data\n"
      "         data>0  data>2\n"
      "rank 2   .       .        data\n"
      "\n"
      "A rank's first line: its output, `.` is empty. `data>0` sends data to rank 0.\n");
}

DrawnSchedule drawn_with(Collective collective, std::string_view algorithm, int ranks, Pattern pattern) {
  const Problem problem{.collective = collective, .ranks = ranks};
  const Counts counts{.pattern = pattern, .name = "a pattern"};
  return {.algorithm = *find_algorithm(collective, algorithm).value(),
          .problem = problem,
          .blocks = CellBlocks(problem, counts, Count{100} * ranks)};
}

TEST(Columns, OfAVFormAreAsLongAsItsBlocks) {
  const std::string text = drawn_text(drawn_with(Collective::all_gather_v, "halving", 4, Pattern::ramp)).value();
  for (const char* line :
       {"\nrank 0   aa ..... ....... ..........  aa bbbbb ....... ..........\n",
        "\nrank 3   .. ..... ....... dddddddddd  aa ..... ....... dddddddddd\n",
        "\nrank 3   aa bbbbb ccccccc dddddddddd\n", "A character is about 16.7\nelements; a shorter block has one. "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
  }
  const std::string holes = drawn_text(drawn_with(Collective::all_gather_v, "halving", 4, Pattern::zeros)).value();
  EXPECT_NE(holes.find("\nrank 3   aaaaaaaaaaaa 0 cccccccccccc 0\n"), std::string::npos) << holes;
}

TEST(Columns, OfVFormsFitATerminal) {
  int drawn = 0;
  for (const Collective form : every_collective()) {
    if (!has_counts(form)) continue;
    for (const Algorithm* algorithm : algorithms_of(form)) {
      for (const Pattern pattern : {Pattern::ramp, Pattern::one_heavy, Pattern::zeros}) {
        const auto text = drawn_text(drawn_with(form, algorithm->name, kMostDrawn, pattern));
        ASSERT_TRUE(text.is_ok()) << text.status().message();
        std::istringstream lines(text.value());
        for (std::string line; std::getline(lines, line);)
          ASSERT_LE(line.size(), kTerminal) << algorithm->name << "\n" << line;
        ++drawn;
      }
    }
  }
  EXPECT_GE(drawn, 30);
}

}  // namespace
}  // namespace tutti::harness::draw
