// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/overview.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/draw/columns.h"
#include "harness/draw/places.h"
#include "harness/draw/svg.h"
#include "harness/text/text.h"

namespace tutti::harness::draw {
namespace {

constexpr std::string_view kBars = "#3a7bc8";

double most_of(const std::vector<std::vector<double>>& table) {
  double most = 0;
  for (const auto& row : table) most = std::max(most, *std::ranges::max_element(row));
  return std::max(most, 1e-9);
}

std::string distance_text(std::size_t distance_class, int ranks) {
  const int least = 1 << distance_class;
  const int last = std::min(ranks / 2, 2 * least - 1);
  return least == last ? std::to_string(least) : fmt::format("{}-{}", least, last);
}

/// Of whom the counts are.
std::string followed_text(const Traffic& traffic) {
  if (traffic.followed == traffic.problem.ranks) return "";
  return fmt::format("Counted on {} of the {} ranks, evenly spaced, each in the order of its own steps.",
                     traffic.followed, traffic.problem.ranks);
}

/// From white (0) to dark blue (1).
std::string shade(double share) {
  const auto mixed = [&](int light, int dark) { return static_cast<int>(std::lround(light + (dark - light) * share)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0xd4, 0x12), mixed(0xe3, 0x3c), mixed(0xf5, 0x73));
}

}  // namespace

std::string overview_svg(const Traffic& traffic, std::string_view title, std::string_view idea) {
  constexpr double kTop = 92, kLeft = 84, kWidth = 640, kLane = 26, kMap = 320, kMapLeft = 800;
  const std::size_t classes = traffic.by_distance.size();
  const double bottom = kTop + kLane * static_cast<double>(classes);
  const Font small{.size = 11, .colour = kPale};
  Svg svg;
  svg.text({16, 26}, title, {.size = 17, .is_bold = true});
  svg.text({16, 46}, idea, {.colour = "#555"});
  svg.text({kLeft, 78}, "How far do messages go in each round? Height: how much is sent.", small);
  const double most = most_of(traffic.by_distance);
  for (std::size_t distance = 0; distance < classes; ++distance) {
    const double base = bottom - kLane * static_cast<double>(distance);
    svg.line({kLeft, base}, {kLeft + kWidth, base}, {.stroke = "#e8e8e8"});
    svg.text({kLeft - 6, base - 8}, distance_text(distance, traffic.problem.ranks),
             {.size = 11, .colour = "#444", .anchor = Anchor::end});
    const double step = kWidth / std::max(1, traffic.bins);
    for (std::size_t bin = 0; bin < traffic.by_distance[distance].size(); ++bin) {
      const double units = traffic.by_distance[distance][bin];
      if (units <= 0) continue;
      const double height = std::max(1.5, (kLane - 2) * units / most);
      svg.box({kLeft + step * static_cast<double>(bin) + 0.5, base - height, std::max(1.0, step - 1), height},
              {.fill = kBars});
    }
  }
  svg.text({kLeft - 6, kTop - 10}, "ranks apart", {.size = 11, .colour = kPale, .anchor = Anchor::end});
  svg.text({kLeft, bottom + 16}, "round 1", small);
  svg.text({kLeft + kWidth, bottom + 16}, fmt::format("round {}", traffic.rounds),
           {.size = 11, .colour = kPale, .anchor = Anchor::end});

  svg.text({kMapLeft, 78}, "Who talks to whom? Dark: much.", small);
  const double tile = kMap / std::max(1, traffic.tiles);
  const double most_in_tile = most_of(traffic.map);
  for (std::size_t from = 0; from < traffic.map.size(); ++from) {
    for (std::size_t to = 0; to < traffic.map.size(); ++to) {
      const double units = traffic.map[from][to];
      if (units <= 0) continue;
      svg.box({kMapLeft + tile * static_cast<double>(to), kTop + tile * static_cast<double>(from), tile, tile},
              {.fill = shade(std::sqrt(units / most_in_tile))});
    }
  }
  svg.box({kMapLeft, kTop, kMap, kMap}, {.stroke = "#999"});
  const int last = traffic.problem.ranks - 1;
  svg.text({kMapLeft - 6, kTop + 12}, "from rank 0", {.size = 11, .colour = kPale, .anchor = Anchor::end});
  svg.text({kMapLeft - 6, kTop + kMap}, fmt::format("from {}", last),
           {.size = 11, .colour = kPale, .anchor = Anchor::end});
  svg.text({kMapLeft, kTop + kMap + 14}, "to rank 0", small);
  svg.text({kMapLeft + kMap, kTop + kMap + 14}, fmt::format("to {}", last),
           {.size = 11, .colour = kPale, .anchor = Anchor::end});
  const Places places(traffic.problem);
  for (int place = 1; place < places.count && places.count <= kMostTiles; ++place) {
    const double at = kMap * place * places.size / traffic.problem.ranks;
    svg.line({kMapLeft + at, kTop}, {kMapLeft + at, kTop + kMap}, {.stroke = "#d9b38c", .width = 0.5});
    svg.line({kMapLeft, kTop + at}, {kMapLeft + kMap, kTop + at}, {.stroke = "#d9b38c", .width = 0.5});
  }
  double at = std::max(bottom, kTop + kMap) + 40;
  if (places.count > 1) {
    svg.text({16, at},
             fmt::format("{} {}s of {} ranks each.{}", places.count, places.name, places.size,
                         places.count <= kMostTiles ? " Thin lines part them on the map." : ""),
             small);
    at += 16;
  }
  svg.text({16, at}, followed_text(traffic), small);
  return svg.file(kMapLeft + kMap + 30, at + 14, fmt::format("{}: {}", title, idea));
}

std::string overview_text(const Traffic& traffic, std::string_view title, std::string_view idea) {
  constexpr std::string_view kDots = " .:-=+*#%@";
  const auto dot = [&](double share) {
    if (share <= 0) return kDots.front();
    const auto place = 1 + static_cast<std::size_t>(share * static_cast<double>(kDots.size() - 2) + 0.5);
    return kDots[std::min(place, kDots.size() - 1)];
  };
  std::string text = fmt::format("{}\n{}\nranks apart, by rounds 1 to {} (to the right); `@` sends most\n", title,
                                 wrapped(idea, 0, kTerminal), traffic.rounds);
  const double most = most_of(traffic.by_distance);
  for (std::size_t distance = traffic.by_distance.size(); distance-- > 0;) {
    std::string line = fmt::format("{:>12} |", distance_text(distance, traffic.problem.ranks));
    for (const double units : traffic.by_distance[distance]) line += dot(units / most);
    text += line + "|\n";
  }
  constexpr std::size_t kSide = 32;
  const std::size_t fold = std::max<std::size_t>(1, (traffic.map.size() + kSide - 1) / kSide);
  const std::size_t side = (traffic.map.size() + fold - 1) / fold;
  std::vector<std::vector<double>> map(side, std::vector<double>(side));
  for (std::size_t from = 0; from < traffic.map.size(); ++from) {
    for (std::size_t to = 0; to < traffic.map.size(); ++to) map[from / fold][to / fold] += traffic.map[from][to];
  }
  text += fmt::format("\nwho sends (rank 0 at the top, {} below) to whom (rank 0 left, {} right)\n",
                      traffic.problem.ranks - 1, traffic.problem.ranks - 1);
  const double most_in_tile = most_of(map);
  for (const auto& row : map) {
    std::string line = fmt::format("{:12} |", "");
    for (const double units : row) line += std::string(2, dot(std::sqrt(units / most_in_tile)));
    text += line + "|\n";
  }
  const std::string followed = followed_text(traffic);
  return followed.empty() ? text : text + "\n" + wrapped(followed, 0, kTerminal);
}

}  // namespace tutti::harness::draw
