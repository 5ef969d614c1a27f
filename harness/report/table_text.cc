// SPDX-License-Identifier: Apache-2.0
#include "harness/report/table_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/record/unusual.h"

namespace tutti::harness::report {

std::string number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return std::string(kMissing);
  if (*value < 9.9995) return fmt::format("{:.3f}", *value);
  if (*value < 99.995) return fmt::format("{:.2f}", *value);
  return *value < 999.95 ? fmt::format("{:.1f}", *value) : fmt::format("{:.0f}", *value);
}

std::string interval(const Row& row) {
  if (!row.time_median || !row.time_ci_low || !row.time_ci_high || *row.time_median <= 0) return std::string(kMissing);
  const double half = std::max(*row.time_ci_high - *row.time_median, *row.time_median - *row.time_ci_low);
  const double percent = 100 * half / *row.time_median;
  if (percent >= 9999.5) return ">9999";
  return percent < 99.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

std::string ratio_text(const std::optional<double>& value) {
  if (!value) return std::string(kMissing);
  if (*value < 0.095) return fmt::format("{:.3f}", *value);
  if (*value < 999.995) return fmt::format("{:.2f}", *value);
  return *value < 99999.5 ? fmt::format("{:.0f}", *value) : fmt::format("{:.0e}", *value);
}

std::string title_of(const Row& row) {
  std::string title = row.collective;
  if (row.dtype != kNone) title += " " + row.dtype;
  if (row.op != kNone) title += " " + row.op;
  if (row.root) title += fmt::format(", root {}", *row.root);
  title += fmt::format(", P={} {} over {}", row.ranks, row.ranks_as, row.transport);
  if (row.placement != kNone) title += fmt::format(", {} place", row.placement == "in" ? "in" : "out of");
  if (row.buffers != kNone) title += fmt::format(", {} buffers", row.buffers);
  if (!row.counts.empty() && row.counts != kNone) title += fmt::format(", {} counts", row.counts);
  if (row.window) title += fmt::format(", window {}", *row.window);
  if (!row.pair.empty() && row.pair != kNeighbours) title += fmt::format(", pair {}", row.pair);
  if (!row.step.empty()) return title + fmt::format(", step {}", row.step);
  return title + ", " + row.cadence;
}

std::string conditions_line(const Row& row) {
  std::vector<std::string> words;
  for (const Unusual& one : unusual_conditions(row)) words.push_back(one.words);
  return words.empty() ? "" : fmt::format("# measured with {}\n", fmt::join(words, ", "));
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace tutti::harness::report
