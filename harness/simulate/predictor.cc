// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/predictor.h"

#include <algorithm>

#include "harness/simulate/symmetry.h"

namespace tutti::harness::simulate {

Result<Predictor> Predictor::make(const Algorithm& algorithm, Problem problem, const Machine& machine,
                                  std::int64_t most_steps) {
  const bool is_one_node = problem.ranks <= machine.ranks_per_node;
  if (!is_one_node) problem.ranks_per_host = machine.ranks_per_node;
  if (is_one_node ? !machine.has_near : !machine.has_far) {
    return error(Code::unavailable, "machine {} has no [{}]: what {} costs is not known", machine.name,
                 is_one_node ? "near" : "far", is_one_node ? "a message within a node" : "a message between nodes");
  }
  Schedule schedule = schedule_of(algorithm, problem);
  const int period = period_of(schedule, machine);
  std::int64_t steps = 0;
  for (int rank = 0; rank < (period > 0 ? period : problem.ranks); ++rank) steps += schedule.step_count(rank);
  if (steps > most_steps) {
    return error(Code::unavailable, "its ranks do {:.2g} steps in all, and at most {:.2g} are walked",
                 static_cast<double>(steps), static_cast<double>(most_steps));
  }
  return Predictor(std::move(schedule), machine, period);
}

Result<Prediction> Predictor::at(double block_bytes) const {
  return walk(schedule_, block_bytes, machine_, {.period = period_});
}

int nearest_ranks(int ranks, const Machine& machine) {
  const int node = machine.ranks_per_node;
  return ranks <= node ? ranks : std::max(1, (ranks + node / 2) / node) * node;
}

}  // namespace tutti::harness::simulate
