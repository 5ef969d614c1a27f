// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/predictor.h"

#include <algorithm>

#include "harness/simulate/symmetry.h"
#include "impl/algorithms/added.h"

namespace tutti::harness::simulate {

namespace {

constexpr std::int64_t kFewSteps = 1'000'000;  ///< are all walked
constexpr int kManyBlocks = 8;                 ///< of the ranks that are walked: a run of so many steps is cut

/// An added algorithm has steps for one number of ranks and one root.
Status check_steps(const Algorithm& algorithm, const Problem& problem) {
  if (has_steps(algorithm, problem, false)) return {};
  const Problem& its = *added_problem(algorithm);
  if (its.ranks != problem.ranks)
    return error(Code::unavailable, "its file has steps for {} ranks, not for {}", its.ranks, problem.ranks);
  return error(Code::unavailable, "its file has steps for root {}, not for {}", its.root, problem.root);
}

/// The job fits the machine, and each slow part is one of the machine.
Status check_nodes(int ranks, const Machine& machine) {
  const int used = (ranks + machine.ranks_per_node - 1) / machine.ranks_per_node;
  const int nodes = machine.network.nodes > 0 ? machine.network.nodes : used;
  if (used > nodes) {
    return error(Code::unavailable, "{} ranks need {} nodes, and machine {} has {}", ranks, used, machine.name, nodes);
  }
  for (const SlowFault& fault : machine.faults) {
    const bool is_leaf = fault.part == SlowPart::uplink || fault.part == SlowPart::uplink_out;
    if (fault.part == SlowPart::rail) continue;
    const int last = std::max(fault.first, fault.second);
    const int there = is_leaf ? (nodes + machine.network.leaf - 1) / machine.network.leaf : nodes;
    if (last >= there) {
      return error(Code::unavailable, "a fault is on {}{}, and {} ranks have {} of {}", is_leaf ? "leaf " : "",
                   is_leaf ? leaf_text(last) : node_text(last), ranks, there, is_leaf ? "the leaves" : "the nodes");
    }
  }
  return {};
}

}  // namespace

Result<Predictor> Predictor::make(const Algorithm& algorithm, Problem problem, const Machine& machine,
                                  std::int64_t most_steps) {
  const bool is_one_node = problem.ranks <= machine.ranks_per_node;
  if (!is_one_node) problem.ranks_per_host = machine.ranks_per_node;
  if (is_one_node) problem.ranks_per_cache = machine.ranks_per_cache;
  if (is_one_node ? !machine.has_near : !machine.has_far) {
    return error(Code::unavailable, "machine {} has no [{}]: what {} costs is not known", machine.name,
                 is_one_node ? "near" : "far", is_one_node ? "a message within a node" : "a message between nodes");
  }
  TUTTI_RETURN_IF_ERROR(check_steps(algorithm, problem));
  TUTTI_RETURN_IF_ERROR(check_nodes(problem.ranks, machine));
  Schedule schedule = schedule_of(algorithm, problem);
  // Symmetry is shown on samples, which are enough for rules. Steps of a file follow none, so that all are walked.
  const Symmetry symmetry = added_problem(algorithm) != nullptr ? Symmetry{} : symmetry_of(schedule, machine);
  const int walked = symmetry.period > 0 ? symmetry.period : problem.ranks;
  std::int64_t steps = 0;
  for (int rank = 0; rank < walked; ++rank) steps += schedule.step_count(rank);
  std::vector<StepRun> runs;
  if (symmetry.alike > 0 && steps > kFewSteps) runs = runs_of(schedule, symmetry.alike, kManyBlocks * walked);
  for (const StepRun& run : runs) steps -= static_cast<std::int64_t>(walked) * (run.length - kManyBlocks * walked);
  if (steps > most_steps) {
    return error(Code::unavailable, "its ranks do {:.2g} steps in all, and at most {:.2g} are walked",
                 static_cast<double>(steps), static_cast<double>(most_steps));
  }
  return Predictor(std::move(schedule), machine, symmetry.period, std::move(runs));
}

Result<Prediction> Predictor::at(double block_bytes) const {
  const WalkOptions options{.order = machine_.shares() ? Order::time : Order::programs, .period = period_};
  if (runs_.empty()) return walk(schedule_, block_bytes, machine_, options);
  return walk_runs(schedule_, runs_, block_bytes, machine_, options);
}

Result<Prediction> Predictor::details(double block_bytes) const {
  constexpr std::int64_t kMostKept = 4'000'000;
  std::int64_t steps = 0;
  for (int rank = 0; rank < walked(); ++rank) steps += schedule_.step_count(rank);
  if (steps > kMostKept) {
    return error(Code::unavailable, "its path is one of {:.2g} steps, and at most {:.2g} are kept",
                 static_cast<double>(steps), static_cast<double>(kMostKept));
  }
  return walk(schedule_, block_bytes, machine_,
              {.order = machine_.shares() ? Order::time : Order::programs,
               .period = period_,
               .keeps_path = true,
               .keeps_loads = true});
}

int nearest_ranks(int ranks, const Machine& machine) {
  const int node = machine.ranks_per_node;
  return ranks <= node ? ranks : std::max(1, (ranks + node / 2) / node) * node;
}

}  // namespace tutti::harness::simulate
