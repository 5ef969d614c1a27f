// SPDX-License-Identifier: Apache-2.0
#include "harness/board/binding.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <pthread.h>
#include <sched.h>

#include <fmt/ranges.h>

#include "harness/machine/allowed_cores.h"
#include "harness/machine/tree.h"

namespace tutti::harness::board {
namespace {

std::vector<std::vector<int>> allowed_nodes(const Places& places) {
  std::vector<std::vector<int>> nodes;
  for (const std::vector<int>& node : places.nodes) {
    std::vector<int> cores;
    std::ranges::set_intersection(node, places.allowed, std::back_inserter(cores));
    if (!cores.empty()) nodes.push_back(std::move(cores));
  }
  return nodes;
}

}  // namespace

Places places_here() {
  Places places{.allowed = allowed_cores(), .nodes = {}};
  const Tree tree("/");
  for (const int node : tree.numbered("sys/devices/system/node", "node")) {
    places.nodes.push_back(parse_cpu_list(tree.text(fmt::format("sys/devices/system/node/node{}/cpulist", node))));
  }
  return places;
}

Result<std::vector<std::vector<int>>> masks_for(std::optional<Bind> bind, int runners, const Places& places) {
  const auto cores = static_cast<int>(places.allowed.size());
  const Bind chosen = bind.value_or(runners <= cores ? Bind::core : Bind::none);
  std::vector<std::vector<int>> masks;
  if (chosen == Bind::none) return std::vector(static_cast<std::size_t>(runners), places.allowed);
  if (chosen == Bind::core) {
    if (runners > cores) {
      return error(Code::invalid_argument,
                   "'core' gives each rank a core of its own: {} ranks on {} allowed core{}: did you mean 'none'?",
                   runners, cores, cores == 1 ? "" : "s");
    }
    for (int runner = 0; runner < runners; ++runner)
      masks.push_back({places.allowed[static_cast<std::size_t>(runner)]});
    return masks;
  }
  const auto nodes = allowed_nodes(places);
  if (nodes.empty()) {
    return error(Code::unavailable, "'numa': this machine does not show its nodes: did you mean 'core' or 'none'?");
  }
  for (int runner = 0; runner < runners; ++runner) {
    masks.push_back(nodes[static_cast<std::size_t>(runner) * nodes.size() / static_cast<std::size_t>(runners)]);
  }
  return masks;
}

bool is_crowded(const std::vector<std::vector<int>>& masks) {
  std::map<std::vector<int>, std::size_t> runners;
  for (const std::vector<int>& mask : masks) {
    if (++runners[mask] > mask.size()) return true;
  }
  return false;
}

Status bind_thread(pthread_t thread, const std::vector<int>& mask) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : mask) CPU_SET(static_cast<std::size_t>(core), &set);
  const int failure = pthread_setaffinity_np(thread, sizeof set, &set);
  if (failure == 0) return {};
  return error(Code::unavailable, "cannot bind a rank to core {}: sched_setaffinity: {}", fmt::join(mask, ","),
               std::strerror(failure));
}

Status bind_this_thread(const std::vector<int>& mask) { return bind_thread(::pthread_self(), mask); }

int cores_together(RanksAs ranks_as) {
  return ranks_as->is_one_thread() ? 1 : static_cast<int>(allowed_cores().size());
}

}  // namespace tutti::harness::board
