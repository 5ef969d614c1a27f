// SPDX-License-Identifier: Apache-2.0
#include "impl/prove/prove.h"

#include "impl/prove/labels.h"
#include "impl/prove/outputs.h"
#include "impl/prove/walk.h"

namespace tutti {
namespace {

/// The plans belong together: one per rank, of one call.
bool check_headers(const PlanSet& set, Findings& findings) {
  const int ranks = set.schedule->problem.ranks;
  if (static_cast<int>(set.plans.size()) != ranks) {
    findings.add(-1, -1, "{} plans for {} ranks", set.plans.size(), ranks);
    return false;
  }
  const PlanHeader& first = set.plans.front().header();
  for (int rank = 0; rank < ranks; ++rank) {
    const PlanHeader& header = set.plans[static_cast<std::size_t>(rank)].header();
    if (header.rank != rank || header.ranks != ranks) {
      findings.add(rank, -1, "the plan is that of rank {} of {}", header.rank, header.ranks);
    } else if (header.hash != first.hash || header.is_in_place != first.is_in_place || header.op != first.op) {
      findings.add(rank, -1, "the plan is of another call than rank 0's");
    }
  }
  return findings.is_empty();
}

void check_synchronises(const PlanSet& set, Labels& labels, Findings& findings) {
  const Escape escape = find_escape(set);
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

Proof prove_plans(const PlanSet& set) {
  Proof proof;
  Findings findings;
  if (check_headers(set, findings)) {
    const Layout layout(set);
    Races races(set, layout, findings);
    Contents<HashLane> contents(set, layout, races, findings);
    if (Walk<Contents<HashLane>>(set, contents, findings).run()) {
      races.finish();
      check_outputs(set, layout, contents, proof.labels, findings);
      check_synchronises(set, proof.labels, findings);
      proof.labels.sends_are_stable = sends_are_stable(set, layout);
    }
  }
  proof.findings = findings.take();
  return proof;
}

Result<Proof> prove(const Schedule& schedule, BindRequest request) {
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
