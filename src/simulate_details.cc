// SPDX-License-Identifier: Apache-2.0
#include "src/simulate_details.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/simulate/routes.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"

namespace tutti::program {
namespace {

namespace simulate = harness::simulate;

/// Which steps the path has to show where it is long: from both of its ends.
constexpr std::size_t kMostShownSteps = 24;
constexpr std::size_t kMostShownLoads = 16;

/// From which node to which, and over which links.
std::string way_text(int from, int to, const simulate::Routes& routes) {
  const int sender = routes.node_at(from), receiver = routes.node_at(to);
  if (sender == receiver) return fmt::format("within {}", simulate::node_text(receiver));
  std::vector<int> links;
  routes.find(from, to, links);
  std::vector<std::string> names;
  for (const int link : links) names.push_back(routes.name(link));
  return fmt::format("{} to {}{}{}", simulate::node_text(sender), simulate::node_text(receiver),
                     names.empty() ? "" : " over ", fmt::join(names, ", "));
}

std::string what_happens(const simulate::PathStep& step, const Schedule& schedule, double unit_bytes,
                         const simulate::Routes& routes) {
  const Step what = schedule.step(step.rank, step.step);
  if (what.verb == Verb::signal) return "sets a flag";
  const std::string way = step.from >= 0 ? way_text(step.from, step.rank, routes) : std::string();
  if (what.verb == Verb::wait)
    return step.from < 0 ? "finds all flags set" : fmt::format("waits for the flag of rank {}, {}", step.from, way);
  std::vector<std::string> words;
  const auto is_channel = [](const Operand& operand) { return operand.space == Space::channel; };
  const bool receives = std::ranges::any_of(what.sources, is_channel);
  if (step.from >= 0)
    words.push_back(fmt::format("waits for the message of rank {}, {}", step.from, way));
  else if (receives)
    words.push_back("takes a message that is there");
  int operands = 0;
  for (const Operand& source : what.sources) operands += source.ranks.n;
  if (operands > 1) words.push_back("reduces");
  if (!std::ranges::all_of(what.destinations, is_channel)) words.push_back("stores");
  for (const Operand& destination : what.destinations) {
    if (is_channel(destination)) words.push_back(fmt::format("sends to rank {}", destination.ranks.first));
  }
  return fmt::format("{} ({:.0f} B)", fmt::join(words, ", "), static_cast<double>(step.units) * unit_bytes);
}

}  // namespace

std::string us_text(double us) {
  const int before = us > 0 ? static_cast<int>(std::floor(std::log10(us))) + 1 : 1;
  return fmt::format("{:.{}f}", us, std::clamp(4 - before, 0, 3));
}

void print_path(const simulate::Prediction& prediction, const simulate::Predictor& predictor, double block_bytes,
                const simulate::Machine& machine) {
  const auto& path = prediction.path;
  simulate::Parts all;
  int crossings = 0;
  for (const simulate::PathStep& step : path) {
    all.processor += step.parts.processor;
    all.memory += step.parts.memory;
    all.latency += step.parts.latency;
    all.wire += step.parts.wire;
    all.interface += step.parts.interface;
    all.links += step.parts.links;
    crossings += step.from >= 0 ? 1 : 0;
  }
  harness::print("\n# critical path: {} us, {}, {} between ranks\n", us_text(prediction.ns / 1000),
                 harness::counted(path.size(), "step"), harness::counted(crossings, "transfer"));
  const double whole = std::max(prediction.ns, 1e-9);
  for (const auto& [name, ns] : {std::pair("processors send and receive", all.processor),
                                 {"reducing and copying", all.memory},
                                 {"latency", all.latency},
                                 {"bytes on the wire", all.wire},
                                 {"waiting for an interface", all.interface},
                                 {"waiting for a link", all.links}}) {
    if (ns > 0) harness::print("#   {:<28} {:>10} us {:>4.0f} %\n", name, us_text(ns / 1000), 100 * ns / whole);
  }
  const double unit_bytes = block_bytes / std::max(1, predictor.schedule().shape.units_per_block);
  const simulate::Routes routes(machine, predictor.schedule().problem.ranks, 0);
  harness::print("#{:>10} {:>10}  {:>7} {:>6}\n#{:>10} {:>10}\n", "from", "until", "rank", "step", "(us)", "(us)");
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.size() > kMostShownSteps && i == kMostShownSteps / 2) {
      const std::size_t left = path.size() - kMostShownSteps;
      harness::print("            ... {} more\n", left);
      i += left;
    }
    const simulate::PathStep& step = path[i];
    harness::print(" {:>10} {:>10}  {:>7} {:>6}  {}\n", us_text(step.begin / 1000), us_text(step.end / 1000), step.rank,
                   step.step, what_happens(step, predictor.schedule(), unit_bytes, routes));
  }
}

void print_loads(const simulate::Prediction& prediction, const simulate::Predictor& predictor, int ranks) {
  const auto& loads = prediction.loads;
  harness::print("\n# busiest interfaces and links, {} in all{}\n", loads.size(),
                 predictor.walked() < ranks ? fmt::format("; what is walked, in place of all, is {}",
                                                          harness::counted(predictor.walked(), "rank"))
                                            : "");
  if (loads.empty()) return;
  harness::print("#{:>10} {:>6}\n#{:>10} {:>6}\n", "busy", "share", "(us)", "(%)");
  for (std::size_t i = 0; i < std::min(loads.size(), kMostShownLoads); ++i) {
    harness::print(" {:>10} {:>6.1f}  {}\n", us_text(loads[i].busy / 1000), 100 * loads[i].busy / prediction.ns,
                   loads[i].name);
  }
}

}  // namespace tutti::program
