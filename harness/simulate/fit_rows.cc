// SPDX-License-Identifier: Apache-2.0
// Which rows of a run a fit can use.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/simulate/fit.h"
#include "harness/simulate/walk.h"
#include "harness/text/number.h"
#include "impl/transports/transport.h"
#include "impl/types/dtype.h"
#include "impl/types/host_list.h"

namespace tutti::harness::simulate {
namespace {

/// On how many hosts a row's ranks were; 0: not known, or not equally many on each.
int hosts_of_row(const Row& row) {
  const auto transports = built_in_transports();
  const auto transport =
      std::ranges::find_if(transports, [&](const Transport* one) { return one->name == row.transport; });
  if (transport == transports.end() || row.ranks < 1) return 0;
  if (!(*transport)->spans_hosts) return 1;
  const auto text_of = [&](std::string_view column) {
    const auto found = row.conditions.find(column);
    return found == row.conditions.end() ? std::string() : found->second;
  };
  std::int64_t hosts = row.ranks;
  if (const std::string named = text_of("hosts"); !named.empty()) {
    const auto list = parse_hosts(named);
    hosts = list.is_ok() ? static_cast<std::int64_t>(list.value().size()) : 0;
  } else if (const std::string pretended = text_of("pretended_hosts"); !pretended.empty()) {
    hosts = text::number_in<std::int64_t>(pretended).value_or(0);
  }
  return hosts > 0 && row.ranks % hosts == 0 ? static_cast<int>(hosts) : 0;
}

/// The time of a row; no algorithm: the model has nothing for it.
MeasuredTime time_of(const Row& row) {
  MeasuredTime time{.problem = {.collective = Collective::all_reduce, .ranks = 1}};
  const auto collective = parse_collective(row.collective);
  const auto dtype = parse_dtype(row.dtype);
  const bool is_usual = row.cadence == "isolated" && row.pair.empty() && row.step.empty();
  if (!collective.is_ok() || has_counts(collective.value()) || !is_usual || !row.time_median || *row.time_median <= 0)
    return time;
  if (row.verdict != Verdict::ok && row.verdict != Verdict::unchecked) return time;
  const auto algorithm = find_algorithm(collective.value(), row.algorithm);
  if (!algorithm.is_ok() || (has_data(collective.value()) && !dtype.is_ok())) return time;
  time.algorithm = algorithm.value();
  time.problem.collective = collective.value();
  time.problem.ranks = static_cast<int>(row.ranks);
  time.problem.root = static_cast<int>(row.root.value_or(0));
  if (row.window) time.problem.pairing.window = static_cast<int>(*row.window);
  time.bytes = row.bytes;
  time.block_bytes =
      static_cast<double>(row.bytes) / (is_divided(collective.value()) ? static_cast<double>(row.ranks) : 1);
  time.us = *row.time_median;
  return time;
}

/// One time for all rows of the same steps and bytes: launches, and whatever else the model does not know.
std::vector<MeasuredTime> medians_of(const std::vector<MeasuredTime>& times) {
  std::vector<MeasuredTime> medians;
  std::vector<std::vector<double>> all;
  for (const MeasuredTime& one : times) {
    const auto same = std::ranges::find_if(medians, [&](const MeasuredTime& other) {
      return other.algorithm == one.algorithm && other.problem == one.problem && other.bytes == one.bytes;
    });
    if (same == medians.end()) {
      medians.push_back(one);
      all.push_back({one.us});
    } else {
      all[static_cast<std::size_t>(same - medians.begin())].push_back(one.us);
    }
  }
  for (std::size_t i = 0; i < medians.size(); ++i) {
    std::ranges::sort(all[i]);
    medians[i].us = (all[i][(all[i].size() - 1) / 2] + all[i][all[i].size() / 2]) / 2;
  }
  return medians;
}

}  // namespace

Result<MeasuredRun> measured_run(const std::vector<Row>& rows) {
  MeasuredRun run;
  std::set<std::string> disturbances;
  std::set<int> of_nodes;
  for (const Row& row : rows) {
    MeasuredTime time = time_of(row);
    const int hosts = hosts_of_row(row);
    if (time.algorithm == nullptr || hosts == 0) {
      ++run.others;
      continue;
    }
    if (!row.disturbed.empty()) {
      ++run.disturbed;
      disturbances.insert(row.disturbed);
      continue;
    }
    if (row.ranks > kMostFitted) {
      return error(Code::invalid_argument, "a row has {} ranks: a fit takes rows of at most {}", row.ranks,
                   kMostFitted);
    }
    const int each = time.problem.ranks / hosts;
    if (hosts > 1) {
      of_nodes.insert(each);
      time.problem.ranks_per_host = each;
    } else {
      run.ranks_per_node = std::max(run.ranks_per_node, each);
    }
    run.times.push_back(time);
  }
  const bool has_one_node =
      std::ranges::any_of(run.times, [](const MeasuredTime& one) { return one.problem.is_on_one_host(); });
  if (of_nodes.size() > 1 || (of_nodes.size() == 1 && has_one_node && *of_nodes.begin() != run.ranks_per_node)) {
    return error(Code::invalid_argument,
                 "its rows differ in how many ranks share a node: fit those of one arrangement at a time");
  }
  if (!of_nodes.empty()) run.ranks_per_node = *of_nodes.begin();
  run.times = medians_of(run.times);
  // Between hosts one_shot sends a few bytes beside its flags, which the model does not.
  Machine machine = example_machine();
  machine.ranks_per_node = run.ranks_per_node;
  run.others += std::erase_if(run.times, [&](const MeasuredTime& one) {
    return !walk(schedule_of(*one.algorithm, one.problem), one.block_bytes, machine).is_ok();
  });
  if (run.times.empty()) {
    if (run.disturbed > 0) {
      return error(Code::unavailable,
                   "each of its {} rows of tutti was disturbed ({}), so nothing is fitted: repeat the run on an idle "
                   "machine",
                   run.disturbed, fmt::join(disturbances, "; "));
    }
    return error(Code::unavailable, "none of its {} rows is an isolated time of one of tutti's algorithms",
                 rows.size());
  }
  return run;
}

}  // namespace tutti::harness::simulate
