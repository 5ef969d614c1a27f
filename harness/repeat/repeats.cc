// SPDX-License-Identifier: Apache-2.0
#include "harness/repeat/repeats.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cases/case.h"
#include "harness/measure/precision.h"
#include "harness/record/launches.h"
#include "harness/record/record.h"
#include "harness/text/counted.h"
#include "harness/text/json_writer.h"
#include "harness/verify/diagnose.h"

namespace tutti::harness::repeat {
namespace {

/// The bits of an element; 0 beyond the end.
std::uint64_t bits_at(std::span<const std::byte> bytes, std::size_t element, Dtype dtype) {
  const std::size_t size = size_of(dtype);
  return (element + 1) * size <= bytes.size() ? element_bits(bytes.subspan(element * size, size), dtype) : 0;
}

std::string place_text(const Difference& found, Dtype dtype) {
  return fmt::format("rank {}, element {}, bit {}: {}", found.rank, found.place.element, found.place.bit,
                     element_text(found.place.mine, dtype));
}

std::string elements_text(const Differing& place) { return counted(place.elements, "element"); }

nlohmann::json json_of(const std::optional<Difference>& found, Dtype dtype) {
  if (!found) return nullptr;
  return {{"launch", found->launch},
          {"call", found->call},
          {"rank", found->rank},
          {"element", found->place.element},
          {"bit", found->place.bit},
          {"value", element_text(found->place.mine, dtype)},
          {"other_value", element_text(found->place.other, dtype)},
          {"elements", found->place.elements}};
}

}  // namespace

std::optional<Differing> first_difference(std::span<const std::byte> mine, std::span<const std::byte> other,
                                          Dtype dtype) {
  if (std::ranges::equal(mine, other)) return {};
  const std::size_t elements = std::max(mine.size(), other.size()) / size_of(dtype);
  std::optional<Differing> place;
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t here = bits_at(mine, i, dtype), there = bits_at(other, i, dtype);
    const bool is_in_both = (i + 1) * size_of(dtype) <= std::min(mine.size(), other.size());
    if (here == there && is_in_both) continue;
    if (!place) {
      place = Differing{.element = static_cast<std::int64_t>(i),
                        .bit = here == there ? 0 : std::countr_zero(here ^ there),
                        .mine = here,
                        .other = there};
    }
    ++place->elements;
  }
  return place;
}

Status Repeats::add(CallResult result) {
  TUTTI_ASSIGN_OR_RETURN(const Case one, parse_case_id(result.case_id));
  const std::string id = cell_of_case(result.case_id), name = system_of(row_of(one));
  auto cell = std::ranges::find_if(cells_, [&](const Cell& other) { return other.found.cell == id; });
  if (cell == cells_.end()) {
    cell = cells_.insert(
        cell,
        {.found = {.cell = id, .dtype = one.dtype, .may_differ = has_precision(one), .systems = {}}, .systems = {}});
  }
  auto kept = std::ranges::find_if(cell->systems, [&](const Kept& other) { return other.found.name == name; });
  if (kept == cell->systems.end()) {
    kept =
        cell->systems.insert(kept, {.found = {.name = name, .case_id = result.case_id, .launches = {}}, .first = {}});
  }
  OfSystem& found = kept->found;
  found.launches.insert(result.launch);
  found.calls = std::max(found.calls, result.call + 1);
  const auto first = kept->first.find(result.rank);
  if (first == kept->first.end()) {
    kept_bytes_ += result.bytes.size();
    kept->first[result.rank] = std::move(result.bytes);
    return {};
  }
  ++found.results;
  const std::optional<Differing> place = first_difference(result.bytes, first->second, one.dtype);
  if (!place) return {};
  ++found.differ;
  if (!found.first) {
    found.first = Difference{.launch = result.launch, .call = result.call, .rank = result.rank, .place = *place};
  }
  return {};
}

std::vector<OfCell> Repeats::cells() const {
  std::vector<OfCell> cells;
  for (const Cell& cell : cells_) {
    OfCell& found = cells.emplace_back(cell.found);
    const Kept& yardstick = cell.systems.front();
    for (const Kept& kept : cell.systems) {
      OfSystem& system = found.systems.emplace_back(kept.found);
      if (&kept == &yardstick) continue;
      system.other = yardstick.found.name;
      for (const auto& [rank, bytes] : kept.first) {
        const auto other = yardstick.first.find(rank);
        if (other == yardstick.first.end() || system.from_other) continue;
        const std::optional<Differing> place = first_difference(bytes, other->second, found.dtype);
        if (place) {
          system.from_other =
              Difference{.launch = *kept.found.launches.begin(), .call = 0, .rank = rank, .place = *place};
        }
      }
    }
  }
  std::ranges::stable_sort(cells, {},
                           [&](const OfCell& cell) { return std::ranges::find(order_, cell.cell) - order_.begin(); });
  return cells;
}

std::int64_t count_wrong(const std::vector<OfCell>& cells) {
  std::int64_t wrong = 0;
  for (const OfCell& cell : cells) {
    for (const OfSystem& system : cell.systems) {
      wrong += system.differ + (system.from_other && !cell.may_differ ? 1 : 0);
    }
  }
  return wrong;
}

std::string text_of(const OfCell& cell) {
  std::string text = fmt::format("{}\n", cell.cell);
  const OfSystem& yardstick = cell.systems.front();
  const bool is_alike = std::ranges::none_of(cell.systems, [&](const OfSystem& system) {
    return system.first || system.from_other || system.launches.size() != yardstick.launches.size() ||
           system.calls != yardstick.calls;
  });
  if (is_alike) {
    std::vector<std::string> names;
    for (const OfSystem& system : cell.systems) names.push_back(system.name);
    return text + fmt::format("  {} x {}: the same bits, of {}{}\n",
                              counted(std::ssize(yardstick.launches), "launch", "es"), counted(yardstick.calls, "call"),
                              fmt::join(names, ", "), names.size() > 1 ? " alike" : "");
  }
  for (const OfSystem& system : cell.systems) {
    text += fmt::format("  {:<20} {} x {}: ", system.name, counted(std::ssize(system.launches), "launch", "es"),
                        counted(system.calls, "call"));
    if (system.first) {
      text += fmt::format(
          "differs from itself, and must be equal: first in launch {}, call {}, {}, where its first result has {}; {}, "
          "and {} of {} results\n",
          system.first->launch, system.first->call, place_text(*system.first, cell.dtype),
          element_text(system.first->place.other, cell.dtype), elements_text(system.first->place), system.differ,
          system.results);
    } else {
      text += "the same bits\n";
    }
    if (system.other.empty()) continue;
    text += fmt::format("  {:<20} ", "");
    if (!system.from_other) {
      text += fmt::format("the same bits as {}\n", system.other);
      continue;
    }
    text +=
        fmt::format("{} {}: first in {}, where that has {}; {}\n",
                    cell.may_differ ? "differs, as it may (rounded in another order), from"
                                    : "differs, and must be equal (nothing is rounded), from",
                    system.other, place_text(*system.from_other, cell.dtype),
                    element_text(system.from_other->place.other, cell.dtype), elements_text(system.from_other->place));
  }
  return text;
}

std::string repeats_json(const std::vector<OfCell>& cells, const std::string& command, std::uint64_t seed) {
  nlohmann::json list = nlohmann::json::array();
  for (const OfCell& cell : cells) {
    nlohmann::json systems = nlohmann::json::array();
    for (const OfSystem& system : cell.systems) {
      nlohmann::json one{{"system", system.name},
                         {"case", system.case_id},
                         {"launches", system.launches.size()},
                         {"calls", system.calls},
                         {"results", system.results},
                         {"differ", system.differ},
                         {"equal", !system.first.has_value()},
                         {"first_difference", json_of(system.first, cell.dtype)}};
      if (!system.other.empty()) {
        one["other"] = system.other;
        one["equal_to_other"] = !system.from_other.has_value();
        one["first_difference_from_other"] = json_of(system.from_other, cell.dtype);
      }
      systems.push_back(std::move(one));
    }
    list.push_back({{"cell", cell.cell}, {"systems_may_differ", cell.may_differ}, {"systems", std::move(systems)}});
  }
  return json_text(nlohmann::json{{"repeat_version", 1},
                                  {"command", command},
                                  {"seed", seed},
                                  {"wrong", count_wrong(cells)},
                                  {"cells", std::move(list)}},
                   1) +
         "\n";
}

}  // namespace tutti::harness::repeat
