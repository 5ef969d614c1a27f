// SPDX-License-Identifier: Apache-2.0
#include "src/simulate_fit.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/record/csv_reader.h"
#include "harness/simulate/fit.h"
#include "harness/simulate/machine_file.h"
#include "harness/text/counted.h"
#include "harness/text/output_file.h"
#include "harness/text/read_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using harness::simulate::Fit;
using harness::simulate::FittedTime;
using harness::simulate::MeasuredRun;

void print_fit(const Fit& fit, const MeasuredRun& run, const std::string& result) {
  harness::print("# simulate --fit {}: {} of tutti, {} on a node\n", shown(result),
                 harness::counted(run.times.size(), "time"), harness::counted(run.ranks_per_node, "rank"));
  harness::print("# left out: {} that were disturbed, {} of other systems or without such a time\n",
                 harness::counted(run.disturbed, "row"), run.others);
  harness::print("# costs are fitted on every other size; the sizes between them are predicted\n");
  harness::print("# {:<14} {:<18} {:>6} {:>11} {:>11} {:>11} {:>7}\n", "collective", "algorithm", "ranks", "size",
                 "measured", "by model", "error");
  harness::print("# {:<14} {:<18} {:>6} {:>11} {:>11} {:>11} {:>7}\n", "", "", "", "(B)", "(us)", "(us)", "(%)");
  std::vector<FittedTime> times = fit.times;
  std::ranges::stable_sort(times, {}, [](const FittedTime& one) { return one.time.bytes; });
  for (const FittedTime& one : times) {
    harness::print("  {:<14} {:<18} {:>6} {:>11} {:>11.4g} {:>11.4g} {:>+7.1f}  {}\n",
                   to_string(one.time.problem.collective), one.time.algorithm->name, one.time.problem.ranks,
                   one.time.bytes, one.time.us, one.us, 100 * one.error(), one.is_held_out ? "predicted" : "fitted");
  }
  const auto held_out = std::ranges::count_if(times, &FittedTime::is_held_out);
  double worst = 0;
  for (const FittedTime& one : times) {
    if (one.is_held_out && std::abs(one.error()) > std::abs(worst)) worst = one.error();
  }
  harness::print("# median error: {:.1f} % of {} predicted (worst {:+.1f} %), {:.1f} % of {} fitted\n",
                 100 * median_error(fit, true), harness::counted(held_out, "time"), 100 * worst,
                 100 * median_error(fit, false), times.size() - static_cast<std::size_t>(held_out));
  if (!fit.kept.empty())
    harness::print("# the rows say nothing about: {}; those are near the example's\n", fmt::join(fit.kept, "; "));
  harness::print("# machine {}, fitted on all sizes:\n", fit.machine.name);
}

}  // namespace

int fit_machine(const std::string& result, const std::string& out) {
  harness::OutputFiles files;
  if (const Status opened = files.open(out); !opened.is_ok()) return complain(opened);
  const auto refused = [&](const Status& status) {
    return complain(error(status.code(), "--fit: '{}': {}", shown(result), status.message()));
  };
  const auto text = harness::read_file(result, harness::kMostInResult);
  if (!text.is_ok()) return complain(error(text.status().code(), "--fit: {}", text.status().message()));
  const auto columns = harness::column_names_of_csv(text.value());
  if (!columns.is_ok()) return refused(columns.status());
  const auto rows = harness::rows_from_csv(text.value());
  if (!rows.is_ok()) return refused(rows.status());
  if (std::ranges::find(columns.value(), "disturbed") == columns.value().end()) {
    return refused(error(Code::unavailable,
                         "it has no column 'disturbed', so whether its times can be trusted is not known: repeat the "
                         "run with this version"));
  }
  const auto run = harness::simulate::measured_run(rows.value());
  if (!run.is_ok()) return refused(run.status());
  std::string name;
  constexpr std::size_t kLongest = 60;
  for (const char letter : std::filesystem::path(result).stem().string().substr(0, kLongest)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_';
    name += is_plain ? letter : '_';
  }
  const auto fitted = harness::simulate::fit(run.value(), name.empty() ? "fitted" : name);
  if (!fitted.is_ok()) return refused(fitted.status());
  print_fit(fitted.value(), run.value(), result);
  const std::string machine = harness::simulate::machine_toml(fitted.value().machine);
  if (out.empty()) {
    harness::print("{}", machine);
    return exit_ok;
  }
  const Status written = files.replace(out, machine);
  if (!written.is_ok()) return complain(written);
  harness::print("# written to {}\n", shown(out));
  return exit_ok;
}

}  // namespace tutti::program
