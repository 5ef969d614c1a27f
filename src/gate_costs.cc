// SPDX-License-Identifier: Apache-2.0
#include "src/gate_costs.h"

#include <map>

#include <fmt/format.h>

#include "harness/cases/suite.h"
#include "harness/cases/topology.h"
#include "harness/gate/counters.h"
#include "harness/process/command_run.h"
#include "harness/text/counted.h"
#include "impl/types/names.h"
#include "src/program.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Counters;
using harness::Evidence;

constexpr const char* kOfSteps = "messages, bytes and rounds";
constexpr const char* kOfCalls = "allocations and system calls";

/// What another build says of its cells.
struct CostsOfOther {
  harness::CountersByCell counters = {};
  harness::ReasonsByCell reasons = {};
  std::string otherwise = {};  ///< why a cell is in neither

  [[nodiscard]] const std::string& why(const std::string& cell) const {
    const auto reason = reasons.find(cell);
    return reason == reasons.end() ? otherwise : reason->second;
  }
};

Result<CostsOfOther> ask_other(const GatePlan& plan, const harness::Interrupts& interrupts) {
  std::string cells;
  for (const Case& one : plan.cases) cells += (cells.empty() ? "" : ",") + cell_id(one);
  std::vector<std::string> command{plan.program, "list", "--costs", cells};
  if (const auto& hosts = plan.conditions.topology.hosts; !hosts.empty()) {
    command.insert(command.end(), {"--hosts", to_text(hosts)});
  }
  constexpr std::chrono::minutes kLimit{5};
  const auto run = harness::run_command(command, kLimit, interrupts);
  if (run.status().code() == Code::aborted) return run.status();
  if (!run.is_ok()) return CostsOfOther{.otherwise = std::string(run.status().message())};
  const std::string& name = plan.contest.names.other;
  const int code = run.value().exit_code;
  return CostsOfOther{.counters = harness::counters_from_json(run.value().output),
                      .reasons = harness::reasons_from_json(run.value().output),
                      .otherwise = code == exit_ok ? fmt::format("{} does not say", name)
                                                   : fmt::format("{}, asked for them, ended with exit code {}: {}",
                                                                 name, code, shown(run.value().last_words()))};
}

class CostComparison {
 public:
  explicit CostComparison(const GatePlan& plan)
      : plan_(plan), names_(plan.contest.names), topologies_(plan.conditions, transport_directories()) {}

  Status run(const harness::Interrupts& interrupts, std::vector<Evidence>& evidence) {
    CostsOfOther theirs;
    const bool is_alone = plan_.program.empty();
    if (is_alone) {
      judges_calls_ = !harness::clock_calls_kernel();
    } else {
      TUTTI_ASSIGN_OR_RETURN(theirs, ask_other(plan_, interrupts));
    }
    for (std::size_t i = 0; i < evidence.size(); ++i) {
      TUTTI_ASSIGN_OR_RETURN(const harness::Topology* const topology, topologies_.of(plan_.cases[i]));
      auto mine = harness::counters_of(plan_.cases[i], *topology);
      if (mine.status().code() == Code::refuted) evidence[i].wrong = mine.status().message();
      if (mine.status().code() == Code::refuted) continue;
      TUTTI_RETURN_IF_ERROR(mine.status());
      const Place place{.one = plan_.cases[i], .topology = *topology};
      is_alone ? look_at(evidence[i], mine.value(), place) : compare(evidence[i], mine.value(), place, theirs);
    }
    return {};
  }

  [[nodiscard]] GateCosts told() const {
    GateCosts costs;
    if (compared_ > 0) {
      costs.compared =
          fmt::format("{} of {}, {} of {}", kOfSteps, harness::counted(compared_, "cell"), kOfCalls, compared_calls_);
    }
    if (looked_at_ > 0) {
      costs.remarks.push_back(fmt::format(
          "counted of this build: {} in {} operations of {}, which need none{}",
          judges_calls_ ? kOfCalls : "allocations", harness::kCountedOperations, harness::counted(looked_at_, "cell"),
          judges_calls_ ? "" : "; no system calls, since to read the clock is one here"));
    }
    if (other_algorithm_ > 0) {
      costs.remarks.push_back(fmt::format("not compared: {}, {} of {}: another algorithm", kOfSteps, kOfCalls,
                                          harness::counted(other_algorithm_, "cell")));
    }
    for (const auto& [what, cells] : not_counted_) {
      costs.remarks.push_back(
          fmt::format("not counted: {} of {}: {}", what.first, harness::counted(cells, "cell"), what.second));
    }
    return costs;
  }

 private:
  struct Place {
    const Case& one;
    const harness::Topology& topology;
  };
  void compare(Evidence& evidence, Counters& mine, const Place& place, const CostsOfOther& theirs) {
    const auto other = theirs.counters.find(evidence.cell);
    if (other == theirs.counters.end()) {
      leave_out(fmt::format("{}, {}", kOfSteps, kOfCalls), theirs.why(evidence.cell));
      return;
    }
    if (!other->second.footprint) {
      leave_out(kOfCalls, theirs.why(evidence.cell));
    } else if (const Status status = count_footprint(mine, place.one, place.topology); !status.is_ok()) {
      leave_out(kOfCalls, std::string(status.message()));
    }
    if (!compare_counters(evidence, mine, other->second, names_)) {
      ++other_algorithm_;
      return;
    }
    ++compared_;
    compared_calls_ += mine.footprint && other->second.footprint ? 1 : 0;
  }

  void look_at(Evidence& evidence, Counters& mine, const Place& place) {
    if (const Status status = count_footprint(mine, place.one, place.topology); !status.is_ok()) {
      return leave_out(kOfCalls, std::string(status.message()));
    }
    require_no_footprint(evidence, mine, judges_calls_);
    ++looked_at_;
  }

  void leave_out(const std::string& what, const std::string& why) { ++not_counted_[{what, why}]; }

  const GatePlan& plan_;
  const harness::SideNames& names_;
  harness::Topologies topologies_;
  bool judges_calls_ = true;
  int compared_ = 0;         ///< cells whose counters both builds say, of one algorithm
  int compared_calls_ = 0;   ///< of these, those of which both could count what operations allocate and call
  int other_algorithm_ = 0;  ///< cells for which the builds choose different ones
  int looked_at_ = 0;        ///< cells of this build alone
  std::map<std::pair<std::string, std::string>, int> not_counted_;  ///< by what and why: cells
};

}  // namespace

Result<GateCosts> compare_costs(const GatePlan& plan, const harness::Interrupts& interrupts,
                                std::vector<Evidence>& evidence) {
  CostComparison comparison(plan);
  TUTTI_RETURN_IF_ERROR(comparison.run(interrupts, evidence));
  return comparison.told();
}

}  // namespace tutti::program
