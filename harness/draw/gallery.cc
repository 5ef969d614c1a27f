// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/gallery.h"

#include <fmt/format.h>

#include "harness/draw/columns.h"
#include "harness/draw/overview.h"
#include "harness/draw/places.h"
#include "harness/draw/space_time.h"
#include "harness/draw/svg.h"
#include "harness/text/text.h"

namespace tutti::harness::draw {
namespace {

/// A v form has the schedule of its base.
Schedule schedule_for(const DrawnSchedule& drawing) {
  Problem problem = drawing.problem;
  problem.collective = base_of(problem.collective);
  return schedule_of(drawing.algorithm, problem);
}

Lengths lengths_of(const DrawnSchedule& drawing, const Schedule& schedule) {
  if (!drawing.blocks || drawing.problem.ranks > kMostDrawn) return {};
  return {drawing.problem, *drawing.blocks, schedule.shape.units_per_block};
}

std::string idea_of(const DrawnSchedule& drawing) {
  const std::string summary(drawing.algorithm.summary);
  return drawing.note.empty() ? summary : drawing.note + " " + summary;
}

}  // namespace

std::string title_of(const DrawnSchedule& drawing) {
  const Problem& problem = drawing.problem;
  std::string title = fmt::format("{} {} on {} rank{}", to_string(problem.collective), drawing.algorithm.name,
                                  problem.ranks, problem.ranks == 1 ? "" : "s");
  if (const Places places(problem); places.count > 1) title += fmt::format(", {} {}s", places.count, places.name);
  if (is_rooted(problem.collective)) title += fmt::format(", root {}", problem.root);
  return title;
}

Result<std::string> schedule_svg(const Schedule& schedule, const std::string& title, const std::string& idea,
                                 const Lengths& lengths) {
  if (schedule.problem.ranks <= kMostDrawn) {
    TUTTI_ASSIGN_OR_RETURN(const Story story, story_of(schedule));
    return space_time_svg(story, title, idea, lengths);
  }
  TUTTI_ASSIGN_OR_RETURN(const Traffic traffic, traffic_of(schedule));
  return overview_svg(traffic, title, idea);
}

Result<std::string> schedule_text(const Schedule& schedule, const std::string& title, const std::string& idea,
                                  const Lengths& lengths) {
  if (schedule.problem.ranks <= kMostDrawn) {
    TUTTI_ASSIGN_OR_RETURN(const Story story, story_of(schedule));
    return fmt::format("{}\n{}{}", title, wrapped(idea, 0, kTerminal), columns_text(story, lengths));
  }
  TUTTI_ASSIGN_OR_RETURN(const Traffic traffic, traffic_of(schedule));
  return overview_text(traffic, title, idea);
}

Result<std::string> drawn_svg(const DrawnSchedule& drawing) {
  const Schedule schedule = schedule_for(drawing);
  return schedule_svg(schedule, title_of(drawing), idea_of(drawing), lengths_of(drawing, schedule));
}

Result<std::string> drawn_text(const DrawnSchedule& drawing) {
  const Schedule schedule = schedule_for(drawing);
  return schedule_text(schedule, title_of(drawing), idea_of(drawing), lengths_of(drawing, schedule));
}

Problem shown_problem(const Algorithm& algorithm) {
  if (has_window(algorithm.collective) || algorithm.collective == Collective::pingpong) {
    return {.collective = algorithm.collective, .ranks = 2, .pairing = {.window = 3}};
  }
  if (algorithm.is_by_hosts) return {.collective = algorithm.collective, .ranks = 6, .ranks_per_host = 3};
  if (algorithm.is_by_caches) return {.collective = algorithm.collective, .ranks = 6, .ranks_per_cache = 3};
  return {.collective = algorithm.collective, .ranks = 5};
}

Result<std::vector<Shown>> gallery() {
  std::vector<Shown> list;
  for (const Algorithm* algorithm : all_algorithms()) {
    const DrawnSchedule drawing{.algorithm = *algorithm, .problem = shown_problem(*algorithm)};
    TUTTI_ASSIGN_OR_RETURN(std::string svg, drawn_svg(drawing));
    list.push_back({.path = fmt::format("{}/{}.svg", to_string(algorithm->collective), algorithm->name),
                    .title = title_of(drawing),
                    .idea = std::string(algorithm->summary),
                    .svg = std::move(svg)});
  }
  return list;
}

std::string gallery_page(const std::vector<Shown>& gallery) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>tutti: schedules</title>\n"
      "<style>body{font-family:sans-serif;margin:2em;max-width:90em}img{max-width:100%;border:1px solid #ddd}"
      "figure{margin:0 0 2em}</style>\n</head>\n<body>\n<h1>The schedules of tutti</h1>\n";
  for (const Shown& one : gallery) {
    page += fmt::format("<figure id=\"{0}\"><img src=\"{0}\" alt=\"{1}: {2}\" loading=\"lazy\"></figure>\n", one.path,
                        escaped(one.title), escaped(one.idea));
  }
  return page + "</body>\n</html>\n";
}

}  // namespace tutti::harness::draw
