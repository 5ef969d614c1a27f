// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/refine_plans.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "impl/prove/forms.h"
#include "impl/prove/refines.h"

namespace tutti {
namespace {

constexpr std::int64_t kMostSlicesOfPlan = std::int64_t{1} << 21;

/// Of all plans of a schedule together, but for the last one.
std::int64_t most_cost(int ranks) {
  constexpr std::int64_t kOfAll = std::int64_t{1} << 18;
  constexpr std::int64_t kOfSome = 200;
  constexpr int kMostRanksWithAll = 48;
  return ranks <= kMostRanksWithAll || std::has_single_bit(static_cast<unsigned>(ranks)) ? kOfAll : kOfSome;
}

/// What one rank's plan is, if it refines its steps.
Result<PlanHeader> refine(const Schedule& schedule, const Form& form, int rank) {
  BindRequest request = request_of(schedule, form);
  request.rank = rank;
  request.has_sound_steps = false;
  BlockTable blocks;
  if (form.has_lengths) {
    TUTTI_ASSIGN_OR_RETURN(blocks, uneven_blocks(schedule.problem, rank));
    request.blocks = &blocks;
  }
  TUTTI_ASSIGN_OR_RETURN(const BoundCall call, bind(schedule, request));
  const Plan& plan = call.plan(0);
  const auto departures = find_departures(schedule, {.plan = plan, .request = request, .segment = request.count});
  if (departures.empty()) return plan.header();
  return error(Code::refuted, "{}: the plan is not what the steps say:\n  {}", describe(schedule, form),
               to_string(departures.front()));
}

}  // namespace

Result<RefinedPlans> refine_some_plans(const Schedule& schedule) {
  const Problem& problem = schedule.problem;
  std::mt19937 random(static_cast<unsigned>(problem.ranks));
  const int drawn = static_cast<int>(random() % static_cast<unsigned>(problem.ranks));
  const std::vector<Form> forms = forms_of(schedule);
  std::vector<std::pair<std::size_t, int>> plans;  // form and rank
  for (std::size_t form = 0; form < forms.size(); ++form) {
    for (const int rank : std::set{0, std::min(1, problem.ranks - 1), problem.ranks - 1, problem.root, drawn}) {
      plans.emplace_back(form, rank);
    }
  }
  std::shuffle(plans.begin(), plans.end(), random);
  RefinedPlans refined;
  std::set<int> ranks;
  std::vector<std::optional<std::uint64_t>> hashes(forms.size());
  const std::int64_t most = most_cost(problem.ranks);
  std::int64_t cost = 0;
  for (const auto& [at, rank] : plans) {
    const Form& form = forms[at];
    if (cost > most) break;
    const std::int64_t slices = std::int64_t{schedule.step_count(rank)} * std::max(1, form.slices);
    if (slices > kMostSlicesOfPlan || (slices > most && form.slices > 1)) continue;
    TUTTI_ASSIGN_OR_RETURN(const PlanHeader header, refine(schedule, form, rank));
    if (hashes[at].value_or(header.hash) != header.hash) {
      return error(Code::refuted, "{}: the plan of rank {} is of another call than another rank's",
                   describe(schedule, form), rank);
    }
    hashes[at] = header.hash;
    cost += std::int64_t{header.ops} + header.operands + header.exposures;
    ++refined.plans;
    ranks.insert(rank);
  }
  refined.ranks = static_cast<int>(ranks.size());
  return refined;
}

}  // namespace tutti
