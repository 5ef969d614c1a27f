// SPDX-License-Identifier: Apache-2.0
// HostsCrew: the crew of `tutti accept` on hosts that an agent reaches. Their processes stay (harness/hosts/crew.h). A
// group is a job of its own over some of them: it has its own key, memory, ports, deadline and end. Groups of one play
// run at once.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/report.h"
#include "harness/doctor/host_visits.h"
#include "harness/hosts/crew.h"
#include "impl/types/host_list.h"
#include "impl/types/status.h"
#include "src/options.h"
#include "src/references.h"

namespace tutti::program {

/// What plays on the hosts.
struct PlayedSystem {
  std::string backend = "tutti";  ///< or a reference
  Starter starter = {};           ///< of the reference: a command, as of an MPI, starts the ranks of each group anew
  std::string transport;          ///< of tutti: any that joins hosts
  int window = 8;                 ///< messages of a bandwidth test that are under way
  double deadline_times = 5;      ///< of a short test, see AcceptPlan
  int ranks_per_node = 1;         ///< of groups and soaks; of a node alone two at least; of pairs and rings one
};

/// Whether ranks of its own are started for each group, so that it plays groups, soaks and trainings only; or its
/// buffers are in the memory of GPUs, so that it plays groups only.
[[nodiscard]] bool has_own_launch(const PlayedSystem& system);
/// Stages that it does not play, and why.
[[nodiscard]] std::map<std::string, std::string> stages_without(const PlayedSystem& system);

class HostsCrew final : public harness::accept::Crew {
 public:
  /// Starts a process on each host of `places`, on which `system` plays. One that cannot be reached, or has another
  /// build, is absent. Errors: those of this machine; aborted: it was interrupted.
  [[nodiscard]] static Result<std::unique_ptr<HostsCrew>> start(const Settings& places, PlayedSystem system);

  [[nodiscard]] int nodes() const override { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] std::string name_of(int node) const override { return hosts_.at(static_cast<std::size_t>(node)).name; }
  [[nodiscard]] int leaf_of(int node) const override {
    return leaves_.empty() ? 0 : leaves_.at(static_cast<std::size_t>(node));
  }
  /// Whether Slurm has told each host its leaf.
  [[nodiscard]] bool are_leaves_known() const { return !leaves_.empty(); }
  [[nodiscard]] std::string absence_of(int node) const override;
  [[nodiscard]] std::string library() const override;
  [[nodiscard]] bool plays_library(harness::accept::Measure measure) const override;
  [[nodiscard]] std::string bare_system() const override { return "tutti over " + system_.transport; }
  [[nodiscard]] std::vector<std::string> rails() const override { return places_.reach.rails; }
  [[nodiscard]] std::string absence_of_rail(int node, int rail) const override;
  [[nodiscard]] std::vector<std::vector<harness::accept::Outcome>> play(
      const std::vector<harness::accept::Group>& groups, const std::vector<harness::accept::Test>& tests) override;
  void pause() override;
  /// Asks each host what `tutti doctor --hosts` asks, over the connection that its process has. Returns visits without
  /// clocks, routes and logins. Errors: aborted: it was interrupted. Called once.
  [[nodiscard]] Result<std::vector<harness::Visit>> visit();
  /// Why a test could not be played that is in the plan: no node is to blame for it. The tests are interrupted ones
  /// then.
  [[nodiscard]] const Status& failure() const { return failure_; }
  /// Times of all groups so far that came to their first collective.
  [[nodiscard]] harness::accept::InitTimes init() const;

 private:
  HostsCrew(const Settings& places, PlayedSystem system)
      : places_(places), system_(std::move(system)), hosts_(places.conditions.topology.hosts) {}
  /// What plays this test.
  [[nodiscard]] PlayedSystem system_for(const harness::accept::Test& test) const;
  /// In which a job has to end that is of this kind.
  [[nodiscard]] std::chrono::milliseconds deadline(const std::string& kind) const;
  /// Ranks of each host.
  [[nodiscard]] int slots_for(harness::accept::Measure measure) const;
  /// Plays the tests there, or those of the way back, and sets their outcomes. All are of one rail.
  void play_part(const std::vector<harness::accept::Group>& groups, const std::vector<harness::accept::Test>& tests,
                 bool is_back, std::vector<std::vector<harness::accept::Outcome>>& outcomes);

  Settings places_;
  PlayedSystem system_;
  std::vector<NamedHost> hosts_;
  std::vector<int> leaves_;                             ///< by host; empty: they are not known
  std::map<std::string, std::vector<double>> seconds_;  ///< by kind, that jobs took
  std::uint64_t plays_ = 0;
  Status failure_;
  struct Ready {
    double seconds = 0;
    harness::accept::Group nodes = {};
  };
  std::vector<Ready> ready_;  ///< of each group
  harness::hosts::Crew crew_;
};

}  // namespace tutti::program
