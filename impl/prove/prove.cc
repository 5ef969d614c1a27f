// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/prove.h"

#include "impl/prove/another_size.h"
#include "impl/prove/labels.h"
#include "impl/prove/outputs.h"
#include "impl/prove/plans.h"
#include "impl/prove/walk.h"
#include "impl/schedule/check.h"

namespace tutti {
namespace {

void check_synchronises(const PlanSet& set, const News& news, Labels& labels, Findings& findings) {
  const Escape escape = find_escape(news);
  labels.synchronises = escape.rank < 0;
  if (labels.synchronises) return;
  if (set.schedule->problem.collective == Collective::barrier || set.plans.front().header().synchronises) {
    findings.add(escape.rank, -1, "can end before rank {} has started, though {}", escape.before,
                 set.schedule->problem.collective == Collective::barrier ? "this is a barrier"
                                                                         : "the plan says that it synchronises");
  }
}

}  // namespace

std::string to_string(const Finding& finding) {
  if (finding.rank < 0) return finding.message;
  if (finding.step < 0) return fmt::format("rank {}: {}", finding.rank, finding.message);
  return fmt::format("rank {} step {}: {}", finding.rank, finding.step, finding.message);
}

std::vector<Finding> find_flaws(const Schedule& schedule) {
  Findings findings;
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    const int count = schedule.step_count(rank);
    Place place;
    for (int i = 0; i < count; ++i) {
      const Step step = schedule.step(rank, i);
      place.is_last = i + 1 == count;
      if (const std::string flaw = flaw_of(schedule, step, place); !flaw.empty()) findings.add(rank, i, "{}", flaw);
      place.is_in_turn_with_previous = step.in_turn_with_next;
    }
  }
  return findings.take();
}

Proof prove_plans(const PlanSet& set, const Proved* like) {
  Proof proof;
  Findings findings;
  if (check_plans(set, findings)) {
    if (like != nullptr && is_in_another_size(set, like->set)) return {.findings = {}, .labels = like->labels};
    const Layout layout(set);
    Races races(set, layout, findings);
    Contents<HashLane> contents(set, layout, races, findings);
    News news(set.plans.size());
    Both both(contents, news);
    if (Walk<decltype(both)>(set, both, findings).run()) {
      races.finish();
      check_outputs(set, layout, contents, proof.labels, findings);
      check_synchronises(set, news, proof.labels, findings);
      proof.labels.sends_are_stable = sends_are_stable(set, layout);
    }
  }
  proof.findings = findings.take();
  return proof;
}

Result<Proof> prove(const Schedule& schedule, BindRequest request, std::span<const BlockTable> blocks) {
  if (!request.has_sound_steps) {
    if (Proof proof{.findings = find_flaws(schedule), .labels = {}}; !proof.holds()) return proof;
  }
  request.has_sound_steps = true;
  request.keep_exposures = true;
  std::vector<Plan> plans;
  for (request.rank = 0; request.rank < schedule.problem.ranks; ++request.rank) {
    request.blocks = &blocks[static_cast<std::size_t>(request.rank)];
    TUTTI_ASSIGN_OR_RETURN(BoundCall call, bind(schedule, request));
    plans.push_back(std::move(call.tail));
  }
  return prove_plans({.schedule = &schedule,
                      .plans = plans,
                      .slots = request.resources.slots,
                      .slot_bytes = request.resources.slot_bytes,
                      .blocks = blocks});
}

Result<Proof> prove(const Schedule& schedule, BindRequest request) {
  if (Proof proof{.findings = find_flaws(schedule), .labels = {}}; !proof.holds()) return proof;
  request.keep_exposures = true;
  std::vector<Plan> full;
  std::vector<Plan> tail;
  std::int64_t segment_bytes = 0;
  std::int64_t tail_bytes = 0;
  const std::int64_t block_bytes = request.count * static_cast<std::int64_t>(size_of(request.dtype));
  for (request.rank = 0; request.rank < schedule.problem.ranks; ++request.rank) {
    TUTTI_ASSIGN_OR_RETURN(BoundCall call, bind(schedule, request));
    segment_bytes = call.segment_bytes;
    tail_bytes = block_bytes - call.full_segments * call.segment_bytes;
    if (call.full_segments > 0) full.push_back(std::move(call.full));
    if (call.has_tail) tail.push_back(std::move(call.tail));
  }
  PlanSet set{.schedule = &schedule,
              .plans = full,
              .slots = request.resources.slots,
              .slot_bytes = request.resources.slot_bytes,
              .block_bytes = segment_bytes,
              .block_stride = block_bytes};
  Proof proof;
  if (!full.empty()) proof = prove_plans(set);
  if (!tail.empty() && proof.holds()) {
    set.plans = tail;
    set.block_bytes = tail_bytes;
    Proof rest = prove_plans(set);
    // With fewer bytes fewer values differ, so a label of the full segments is the stricter one.
    if (full.empty()) proof.labels = rest.labels;
    proof.findings = std::move(rest.findings);
  }
  return proof;
}

}  // namespace tutti
