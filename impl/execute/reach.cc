// SPDX-License-Identifier: Apache-2.0
#include "impl/execute/reach.h"

#include <optional>
#include <vector>

namespace tutti {
namespace {

/// The first rank of the set that is on another host than `rank`.
std::optional<int> elsewhere(const RankSet& set, int rank, const Hosts& hosts) {
  int member = set.first;
  for (int i = 0; i < set.n; ++i, member = set.after(member, hosts.ranks())) {
    if (!hosts.share_memory(member, rank)) return member;
  }
  return std::nullopt;
}

bool all_elsewhere_in(const RankSet& set, int rank, const Hosts& hosts, const std::vector<bool>& has_sent) {
  int member = set.first;
  for (int i = 0; i < set.n; ++i, member = set.after(member, hosts.ranks())) {
    if (!hosts.share_memory(member, rank) && !has_sent[static_cast<std::size_t>(member)]) return false;
  }
  return true;
}

const char* memory_named(Space space) {
  if (space == Space::input) return "the input";
  return space == Space::output ? "the output" : "the scratch";
}

}  // namespace

Status check_reach(const Schedule& schedule, bool scratch_is_in_line, const Hosts& hosts) {
  const auto crosses = [&](Space space) {
    return space == Space::channel || (space == Space::scratch && scratch_is_in_line);
  };
  const auto refused = [&](int toucher, int owner, const std::string& what) {
    return error(Code::unavailable, "{} of {} {} of rank {} on host {}, which shares no memory with rank {} on host {}",
                 schedule.name, to_string(schedule.problem.collective), what, owner, hosts.host_of(owner), toucher,
                 hosts.host_of(toucher));
  };
  std::vector<bool> has_sent(static_cast<std::size_t>(hosts.ranks()));  // to the rank at hand, so far
  for (int rank = 0; rank < hosts.ranks(); ++rank) {
    has_sent.assign(has_sent.size(), false);
    const int count = schedule.step_count(rank);
    for (int index = 0; index < count; ++index) {
      const Step step = schedule.step(rank, index);
      if (step.verb == Verb::signal) {
        const auto other = elsewhere(step.ranks, rank, hosts);
        for (const Exposure* const one : {&step.read, &step.write}) {
          if (!other || one->is_empty() || crosses(one->space)) continue;
          return refused(*other, rank, fmt::format("exposes {}", memory_named(one->space)));
        }
        const bool is_early = other && !schedule.synchronises && !all_elsewhere_in(step.ranks, rank, hosts, has_sent);
        if (is_early) {
          return error(Code::unavailable,
                       "{} of {} has rank {} on host {} signal to rank {} on host {} without waiting for it",
                       schedule.name, to_string(schedule.problem.collective), rank, hosts.host_of(rank), *other,
                       hosts.host_of(*other));
        }
      }
      for (const Operand& source : step.sources) {
        if (source.space == Space::channel) has_sent[static_cast<std::size_t>(source.ranks.first)] = true;
      }
      for (const Operands<4>* const list : {&step.destinations, &step.sources}) {
        for (const Operand& operand : *list) {
          if (crosses(operand.space)) continue;
          const auto other = elsewhere(operand.ranks, rank, hosts);
          if (other) return refused(rank, *other, fmt::format("touches {}", memory_named(operand.space)));
        }
      }
    }
  }
  return {};
}

bool signals_across(const Schedule& schedule, const Hosts& hosts) {
  for (int rank = 0; rank < hosts.ranks(); ++rank) {
    const int count = schedule.step_count(rank);
    for (int index = 0; index < count; ++index) {
      const Step step = schedule.step(rank, index);
      if (step.verb == Verb::signal && elsewhere(step.ranks, rank, hosts)) return true;
    }
  }
  return false;
}

Status check_reach(const Schedule& schedule, const BoundCall& bound, const Hosts& hosts) {
  const auto has_none = [](const Plan& plan) { return plan.header().scratch_bytes == 0; };
  return check_reach(schedule, has_none(bound.plan(0)) && has_none(bound.plan(bound.segments() - 1)), hosts);
}

}  // namespace tutti
