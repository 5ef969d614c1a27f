// SPDX-License-Identifier: Apache-2.0
// Running cells: one job per launch and number of ranks, one after the other; rows are handed on as they finish.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/expand.h"
#include "harness/cases/topology.h"
#include "harness/hosts/placed_job.h"
#include "harness/launch/announcement.h"
#include "harness/record/block_medians.h"
#include "harness/record/rank_tally.h"
#include "harness/record/record.h"
#include "harness/report/failed_job.h"
#include "harness/session/session.h"
#include "src/references.h"

namespace tutti::program {

/// A job that a starter has started once per rank (join.h), as its launcher, process 0, knows it.
struct StartedJob {
  std::string starter;                                        ///< as rows have it
  std::string arguments;                                      ///< what all ranks were started with
  std::shared_ptr<const harness::Announcement> announcement;  ///< where the ranks of this host find the launcher
  std::shared_ptr<harness::JoinedHosts> hosts = nullptr;      ///< where there are several
};

/// How the machines of the ranks are reached, and reach this one.
struct Reach {
  std::string agent = "ssh";
  std::string interface = {};                          ///< of this machine; empty: that of the route to them
  std::shared_ptr<const StartedJob> joined = nullptr;  ///< null: this process starts the ranks
  std::vector<std::string> rails = {};                 ///< further interfaces, by name or network, of `tutti accept`
};

struct JobsRequest {
  harness::SessionSpec spec;                      ///< what all jobs have in common; cells and ranks are set per job
  std::vector<std::vector<harness::Case>> cells;  ///< sorted by ranks
  int launches = 1;                               ///< of all cells; from two on, each in another seeded order
  std::string flight = {};  ///< folder for what ranks did last before a hang; empty: none is asked for
  Reach reach = {};         ///< of spec.conditions.topology.hosts
  /// Whether it is an error that a reference cannot be started. If not, it is left out with a line on stderr.
  bool are_backends_named = false;
  bool says_left_out = true;  ///< whether that line is wanted
};

/// What the jobs tell.
struct JobsListener {
  std::function<void(const std::vector<harness::Case>& cell, std::size_t index, std::size_t of)> on_begin;
  std::function<Status(const std::vector<harness::Row>& rows)> on_cell;
  std::function<void(int ranks, const std::string& facts_json)> on_facts;
  std::function<Status(std::string_view lines)> on_samples = {};  ///< where spec.tells_samples
  /// Called with each part of a result of a RepeatTask, and the launch that it comes from, before the case's row.
  std::function<Status(int launch, std::string_view text)> on_result = {};
  /// Called for each case of a task that counts blocks, before its row.
  std::function<void(const harness::BlockMedians&)> on_blocks = {};
  /// Called for each case that was measured; `hosts` by rank.
  std::function<void(const harness::RankTally& tally, const std::vector<std::string>& hosts)> on_ranks = {};
  /// Called for each job on several machines, before its rows, with what they say of themselves.
  std::function<void(const std::vector<harness::HostInfo>&)> on_hosts = {};
  /// Cases of a reference that cannot be started here are not run.
  std::function<void(harness::LeftOut)> on_left_out = {};
  std::function<void(const harness::FailedJob&)> on_diagnosis = {};  ///< of a job that failed, once it is over
};

/// The job of a session; all its references have this starter.
[[nodiscard]] harness::PlacedJob job_of(const harness::SessionSpec& spec, const harness::Topology& topology,
                                        const Starter& starter = {}, const Reach& reach = {});
/// Who starts the ranks of these cells, in the order in which they are measured: the own spawn where no reference needs
/// another one, and whoever has started a job that this process joined. Each runs all own cases and those of its
/// references. Errors: those of starter_of.
[[nodiscard]] Result<std::vector<Starter>> starters_of(std::span<const std::vector<harness::Case>> cells,
                                                       harness::RanksAs ranks_as, const Reach& reach);
[[nodiscard]] int exit_code_of(const harness::Outcome& outcome);

/// The cells with the algorithm that `auto` chooses in its place; what then stands in a cell twice runs once. Errors:
/// those of Topologies.
[[nodiscard]] Result<std::vector<std::vector<harness::Case>>> resolved(
    std::span<const std::vector<harness::Case>> cells, harness::Topologies& topologies);

/// Rows carry the number of the start of the ranks that they come from, and where and when that was. `auto` in the
/// cells is resolved before anything is started. So `--case` takes every id that is printed. The exit code: 0, or that
/// of the first job that failed; its reason has then been printed to stderr. After a failure the jobs of the same
/// starter are left out, those of others run. A reference that cannot be started is left out, and all other cases run:
/// if there is no other starter, tutti starts the ranks. The code is then exit_environment if the backends were named.
/// A failing on_cell does not stop a job; its code is returned when nothing else failed.
[[nodiscard]] int run_jobs(const JobsRequest& request, const JobsListener& listener);

}  // namespace tutti::program
