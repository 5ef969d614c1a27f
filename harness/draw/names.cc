// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/names.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "harness/draw/svg.h"
#include "harness/text/text.h"

namespace tutti::harness::draw {
namespace {

RankBits all_ranks(const Story& story) { return (RankBits{2} << static_cast<unsigned>(story.problem.ranks - 1)) - 1; }

int most_given(const Story& story) {
  std::size_t most = 0;
  for (const Parts& parts : story.given) most = std::max(most, parts.size());
  return static_cast<int>(most);
}

bool adds_up(const Story& story) {
  return is_reducing(story.problem.collective) || !has_data(story.problem.collective);
}

/// Only the root gives.
bool is_of_root(const Story& story) {
  return std::ranges::count_if(story.given, [](const Parts& parts) { return !parts.empty(); }) == 1 && !adds_up(story);
}

/// "0+1+2", of more "0-4".
std::string sum_text(RankBits ranks) {
  constexpr int kMostNamed = 3;
  if (std::popcount(ranks) > kMostNamed) return ranks_text(ranks);
  std::string text;
  for (int rank = 0; rank < kMostDrawn; ++rank) {
    if ((ranks >> static_cast<unsigned>(rank) & 1U) != 0) text += fmt::format("{}{}", text.empty() ? "" : "+", rank);
  }
  return text;
}

std::string sum_name(const Story& story, const Part& part, Script script) {
  const bool is_picture = script == Script::picture;
  const bool is_complete = part.ranks == all_ranks(story) && !is_prefix(story.problem.collective);
  if (!has_data(story.problem.collective)) return is_complete ? "all" : ranks_text(part.ranks);
  const std::string unit = most_given(story) > 1 ? letter(part.unit) : "";
  if (is_complete) return is_picture ? "\u03a3" + unit : unit.empty() ? "all" : unit + "*";
  const std::string ranks = is_picture ? sum_text(part.ranks) : ranks_text(part.ranks);
  return unit.empty() ? ranks : unit + (is_picture ? " " : ":") + ranks;
}

}  // namespace

std::string ranks_text(RankBits ranks) {
  std::string text;
  const auto has = [&](int rank) { return rank < kMostDrawn && (ranks >> static_cast<unsigned>(rank) & 1U) != 0; };
  for (int rank = 0; rank < kMostDrawn; ++rank) {
    if (!has(rank)) continue;
    int last = rank;
    while (has(last + 1)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
    if (last > rank) text += fmt::format("{}{}", last == rank + 1 ? "," : "-", last);
    rank = last;
  }
  return text;
}

std::string name_of(const Story& story, const Part& part, Script script) {
  if (part.is_empty()) return "";
  if (adds_up(story)) return sum_name(story, part, script);
  const bool is_one = most_given(story) == 1;
  if (is_of_root(story)) return is_one ? "data" : letter(part.unit);
  const std::string giver = letter(std::countr_zero(part.ranks));
  return is_one ? giver : fmt::format("{}{}", giver, part.unit);
}

std::string given_name(const Story& story, const Part& part, Script script) {
  if (is_reducing(story.problem.collective) && most_given(story) > 1) return letter(part.unit);
  return name_of(story, part, script);
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char one) { return (static_cast<unsigned char>(one) & 0xC0U) != 0x80U; }));
}

std::string names_of(const Story& story, const Parts& parts, Script script, std::size_t most) {
  const std::string_view between = script == Script::picture ? ", " : " ";
  std::string text;
  for (const Part& part : parts) {
    const std::string name = name_of(story, part, script);
    if (name.empty()) continue;
    if (!text.empty() && width_of(text) + between.size() + width_of(name) > most) return text + " ..";
    if (!text.empty()) text += between;
    text += name;
  }
  return text;
}

bool is_by_unit(const Story& story) { return adds_up(story) || is_of_root(story); }

int colours_of(const Story& story) {
  return std::max(1, is_by_unit(story) ? most_given(story) : static_cast<int>(story.given.size()));
}

std::string colour_of(const Story& story, const Part& part, double lightness) {
  const int index = is_by_unit(story) ? part.unit : std::countr_zero(part.ranks);
  return hue(index, colours_of(story), lightness);
}

}  // namespace tutti::harness::draw
