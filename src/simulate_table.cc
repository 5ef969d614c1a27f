// SPDX-License-Identifier: Apache-2.0
#include "src/simulate_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "impl/communicator/selection_table.h"
#include "src/program.h"

namespace tutti::program {
namespace {

namespace simulate = harness::simulate;

/// Without what separates something in a table.
std::string plain_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == ',' || c == '"'; }, '_');
  return name;
}

}  // namespace

Result<std::string> table_of_forecasts(Collective collective, std::span<const simulate::Forecast> forecasts,
                                       const simulate::Machine& machine) {
  std::vector<int> ranks;
  for (const simulate::Forecast& one : forecasts) ranks.push_back(one.ranks);
  std::ranges::sort(ranks);
  std::vector<TableRow> rows;
  int measured = 0;
  for (const simulate::Forecast& forecast : forecasts) {
    const bool is_on_one = forecast.ranks <= machine.ranks_per_node;
    const RanksPlace on = is_on_one ? RanksPlace::one_host : RanksPlace::several_hosts;
    const Problem problem{.collective = collective,
                          .ranks = forecast.ranks,
                          .ranks_per_host = is_on_one ? 0 : machine.ranks_per_node,
                          .ranks_per_cache = is_on_one ? machine.ranks_per_cache : 0};
    for (std::size_t at = 0; at < forecast.bytes.size() && !forecast.columns.empty(); ++at) {
      const ChoiceOf of{.problem = problem, .cores = forecast.ranks, .bytes = forecast.bytes[at], .on = on};
      if (choose(of).is_measured) {
        ++measured;
        continue;
      }
      const std::string& name = forecast.columns[forecast.fastest(at)].algorithm;
      TUTTI_ASSIGN_OR_RETURN(const Algorithm* const fastest, find_algorithm(collective, name));
      TableRow row{.collective = collective,
                   .place = on,
                   .algorithm = fastest,
                   .source = std::string(kSimulatedSource) + plain_name(machine.name),
                   .otherwise = std::string(choose(of).algorithm->name)};
      cover_bytes(row, forecast.bytes, at);
      cover_ranks(row, ranks, forecast.ranks);
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) {
    return error(Code::unavailable, "no row is left: {} have a choice that was measured", measured);
  }
  return table_text(rows, {"selection table of tutti: what `auto` takes, by `tutti simulate`",
                           fmt::format("machine: {}", machine.name), fmt::format("command: {}", command_line())});
}

}  // namespace tutti::program
