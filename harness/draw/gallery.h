// SPDX-License-Identifier: Apache-2.0
// One schedule as a picture of either kind, and the pictures of all algorithms that the docs show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cases/counts.h"
#include "harness/draw/lengths.h"
#include "harness/floors.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::draw {

struct DrawnSchedule {
  const Algorithm& algorithm;
  Problem problem;
  std::string note = {};                  ///< stands below the title, before what the algorithm does
  std::optional<CellBlocks> blocks = {};  ///< of a v form: its blocks are drawn as long as these
};

/// "all_reduce ring on 5 ranks", with root, and with hosts or caches if there are several.
[[nodiscard]] std::string title_of(const DrawnSchedule& drawing);

/// The space-time picture of up to kMostDrawn ranks, an overview of more. Errors: as story_of.
[[nodiscard]] Result<std::string> drawn_svg(const DrawnSchedule& drawing);
/// The same in at most kTerminal columns.
[[nodiscard]] Result<std::string> drawn_text(const DrawnSchedule& drawing);

/// A schedule that is no algorithm's, with a title and a sentence about it. An overview has no lengths. Errors: as
/// story_of.
[[nodiscard]] Result<std::string> schedule_svg(const Schedule& schedule, const std::string& title,
                                               const std::string& idea, const Lengths& lengths = {});
[[nodiscard]] Result<std::string> schedule_text(const Schedule& schedule, const std::string& title,
                                                const std::string& idea, const Lengths& lengths = {});

/// 5 ranks; of algorithms by hosts or caches 2 of these with 3 ranks; of collectives of pairs 2 ranks.
[[nodiscard]] Problem shown_problem(const Algorithm& algorithm);

/// A picture of the docs, by its place in a folder: "all_reduce/ring.svg".
struct Shown {
  std::string path;
  std::string title;
  std::string idea;
  std::string svg;
};
/// All algorithms, sorted as all_algorithms. Errors: as story_of.
[[nodiscard]] Result<std::vector<Shown>> gallery();
/// A page that shows these files, for the folder that holds them.
[[nodiscard]] std::string gallery_page(const std::vector<Shown>& gallery);

}  // namespace tutti::harness::draw
