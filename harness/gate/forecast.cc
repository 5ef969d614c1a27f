// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/forecast.h"

#include "harness/gate/plan.h"

namespace tutti::harness::gate {
namespace {

/// A launch beside its cells, on two virtual cores: the program starts, its ranks meet, and they end.
constexpr std::chrono::milliseconds kStartOfProcesses{350};
constexpr std::chrono::milliseconds kStartOfOthers{150};

}  // namespace

std::chrono::nanoseconds Forecast::planned(std::span<const Case> cases) const {
  std::chrono::nanoseconds launches{};
  for (const CellGroup& group : groups_of(cases)) {
    const bool are_processes = group.cases.front().ranks_as->is_process;
    launches += plan_.cell_time * group.cases.size() + (are_processes ? kStartOfProcesses : kStartOfOthers);
  }
  return launches * plan_.launches;
}

std::chrono::nanoseconds Forecast::blocks(std::span<const Case> cases, int number) const {
  const double scale = planned_so_far_.count() == 0
                           ? 1
                           : static_cast<double>(took_so_far_.count()) / static_cast<double>(planned_so_far_.count());
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(scale * static_cast<double>(planned(cases).count()) * number));
}

void Forecast::add(std::span<const Case> cases, std::chrono::nanoseconds took) {
  planned_so_far_ += planned(cases);
  took_so_far_ += took;
}

}  // namespace tutti::harness::gate
