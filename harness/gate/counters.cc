// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/counters.h"

#include <algorithm>

#include "harness/board/binding.h"
#include "harness/cases/lists.h"
#include "harness/record/record.h"
#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "impl/algorithms/algorithm.h"
#include "impl/prove/prove.h"

namespace tutti::harness::gate {

namespace {

std::optional<std::int64_t> number_in(const nlohmann::json& one, const char* key) {
  const auto found = one.find(key);
  return found == one.end() ? std::nullopt : whole_number(*found);
}

std::optional<std::string> text_in(const nlohmann::json& one, const char* key) {
  const auto found = one.find(key);
  if (found == one.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace

Result<Cost> counted_cost(const Schedule& schedule) {
  const DerivedCost derived = derive_cost(schedule);
  if (!derived.findings.empty()) return error(Code::refuted, "{}", to_string(derived.findings.front()));
  Cost sum;
  for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
    const Cost& found = derived.costs[static_cast<std::size_t>(rank)];
    const Cost stated = schedule.cost(rank);
    if (found.messages != stated.messages || found.units != stated.units || found.depth != stated.depth) {
      return error(
          Code::refuted, "{}, rank {}: its formulas say {} messages, {} units, {} rounds; its steps have {}, {}, {}",
          schedule.name, rank, stated.messages, stated.units, stated.depth, found.messages, found.units, found.depth);
    }
    sum.messages += found.messages;
    sum.units += found.units;
    sum.depth = std::max(sum.depth, found.depth);
  }
  return sum;
}

Result<Counters> counters_of(const Case& one, const Topology& topology) {
  const Problem problem = problem_on_hosts(one, topology);
  Case run = one;
  std::string& name = run.algorithm;
  if (name == kAuto) name = chosen_algorithm(one, topology, cores_together(one.ranks_as));
  TUTTI_ASSIGN_OR_RETURN(const Algorithm* algorithm, find_algorithm(one.collective, without_tuning(name)));
  TUTTI_ASSIGN_OR_RETURN(const Cost cost, counted_cost(schedule_of(*algorithm, problem)));
  const auto block_bytes = has_data(one.collective) ? one.count * static_cast<std::int64_t>(size_of(one.dtype)) : 0;
  return Counters{.algorithm = name,
                  .messages = cost.messages,
                  .bytes = cost.units * block_bytes / algorithm->shape(problem).units_per_block,
                  .rounds = cost.depth,
                  .is_flat = is_flat_on_hosts(run, topology)};
}

Status count_footprint(Counters& counters, const Case& one, const Topology& topology) {
  if (topology.spans_hosts()) {
    return error(Code::unavailable, "ranks of several hosts talk through the kernel, in as many calls as it takes");
  }
  Case counted = one;
  counted.algorithm = counters.algorithm;
  TUTTI_ASSIGN_OR_RETURN(counters.footprint, footprint_of(counted));
  return {};
}

std::string to_json(const CountersByCell& all, const ReasonsByCell& not_counted) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [cell, counters] : all) {
    list.push_back({{"cell", cell},
                    {"algorithm", counters.algorithm},
                    {"messages", counters.messages},
                    {"bytes", counters.bytes},
                    {"rounds", counters.rounds}});
    if (counters.is_flat) list.back()["marks"] = kFlatOnHosts;
    if (!counters.footprint) continue;
    list.back()["operations"] = kCountedOperations;
    list.back()["allocations"] = counters.footprint->allocations;
    list.back()["system_calls"] = counters.footprint->system_calls;
  }
  nlohmann::ordered_json document{{"costs", std::move(list)}};
  for (const auto& [cell, reason] : not_counted) {
    document["not_counted"].push_back({{"cell", cell}, {"reason", shown(reason)}});
  }
  return json_text(document, 2);
}

CountersByCell counters_from_json(std::string_view text) {
  const nlohmann::json document = parse_json(text);
  CountersByCell all;
  if (!document.is_object() || !document.contains("costs")) return all;
  for (const nlohmann::json& one : document["costs"]) {
    if (!one.is_object()) continue;
    const auto cell = text_in(one, "cell");
    const auto algorithm = text_in(one, "algorithm");
    const auto messages = number_in(one, "messages");
    const auto bytes = number_in(one, "bytes");
    const auto rounds = number_in(one, "rounds");
    if (!cell || !algorithm || !messages || !bytes || !rounds) continue;
    Counters& counters = all[*cell];
    counters = {.algorithm = *algorithm, .messages = *messages, .bytes = *bytes, .rounds = *rounds};
    counters.is_flat = text_in(one, "marks") == kFlatOnHosts;
    const auto allocations = number_in(one, "allocations");
    const auto system_calls = number_in(one, "system_calls");
    if (number_in(one, "operations") != kCountedOperations || !allocations || !system_calls) continue;
    counters.footprint = {.allocations = *allocations, .system_calls = *system_calls};
  }
  return all;
}

ReasonsByCell reasons_from_json(std::string_view text) {
  const nlohmann::json document = parse_json(text);
  ReasonsByCell reasons;
  if (!document.is_object() || !document.contains("not_counted")) return reasons;
  for (const nlohmann::json& one : document["not_counted"]) {
    if (!one.is_object()) continue;
    const auto cell = text_in(one, "cell");
    const auto reason = text_in(one, "reason");
    if (cell && reason) reasons[*cell] = *reason;
  }
  return reasons;
}

bool compare_counters(Evidence& evidence, const Counters& mine, const Counters& other, const SideNames& names) {
  if (mine.algorithm != other.algorithm) {
    evidence.note = fmt::format("algorithm {}, of {} {}", mine.algorithm, names.other, other.algorithm);
    return false;
  }
  const auto compare = [&](const std::string& name, std::int64_t now, std::int64_t before) {
    if (now <= before) return;
    const char* separator = evidence.counters.empty() ? "counted, not timed: " : ", ";
    evidence.counters += fmt::format("{}{} {}, of {} {}", separator, name, now, names.other, before);
  };
  compare("messages", mine.messages, other.messages);
  compare("bytes", mine.bytes, other.bytes);
  compare("rounds", mine.rounds, other.rounds);
  if (!mine.footprint || !other.footprint) return true;
  static const std::string in_operations = fmt::format(" in {} operations", kCountedOperations);
  compare("allocations" + in_operations, mine.footprint->allocations, other.footprint->allocations);
  compare("system calls" + in_operations, mine.footprint->system_calls, other.footprint->system_calls);
  return true;
}

void require_no_footprint(Evidence& evidence, const Counters& mine, bool judges_calls) {
  if (!mine.footprint) return;
  const auto require = [&](const char* name, std::int64_t number) {
    if (number == 0) return;
    const char* separator = evidence.counters.empty() ? "counted, not timed: " : ", ";
    evidence.counters +=
        fmt::format("{}{} {} in {} operations, which need none", separator, number, name, kCountedOperations);
  };
  require("allocations", mine.footprint->allocations);
  if (judges_calls) require("system calls", mine.footprint->system_calls);
}

}  // namespace tutti::harness::gate
