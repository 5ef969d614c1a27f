// SPDX-License-Identifier: Apache-2.0
// What `tutti accept` is asked to do, and how long that takes.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/acceptance.h"
#include "harness/cases/case.h"
#include "impl/types/status.h"
#include "src/options.h"

namespace tutti::program {

/// The options of `tutti accept`, as they were typed.
struct AcceptRequest {
  std::string pretend, leaves, rails, stages, resume, lines, json, html, junit, prometheus, exclude, budget, baseline;
  std::string suite, margin, too_fast, seed, message_size, soak;  ///< empty: as the suite says, or as usual
  std::string backend = std::string(harness::kOwnBackend), transport, ranks_per_node = "1";
  bool is_full = false;
  bool only_lists = false;
  bool is_nagios = false;
  bool is_quiet = false;
  bool has_concluded = false;  ///< its verdict is printed
  Settings places;             ///< where the hosts are

  [[nodiscard]] std::string hosts_path() const { return exclude.empty() ? "" : exclude + ".exclude.hosts"; }
  [[nodiscard]] std::string slurm_path() const { return exclude.empty() ? "" : exclude + ".exclude.slurm"; }
};

/// What they mean. An option goes before what the suite says.
/// Errors: invalid_argument naming the option, or the suite's line; io: a file cannot be read.
[[nodiscard]] Result<harness::accept::AcceptPlan> plan_of(const AcceptRequest& request);

/// A baseline has speeds of the rails that play, or of none. Errors: invalid_argument naming the rail.
[[nodiscard]] Status check_baseline(const harness::accept::AcceptPlan& plan, const std::vector<std::string>& rails);

/// What the tests depend on: a journal of another plan has other tests. `cluster`: what is known of it beside the names
/// of its nodes.
[[nodiscard]] std::string plan_text(const AcceptRequest& request, const harness::accept::AcceptPlan& plan,
                                    const std::string& cluster);

/// "# 64 nodes: alone 16 rounds, pairs 63 rounds and up to 96 of repeats, more in noise, at 0.5 to 1.5 s a round: 40 s
/// to 3.8 min. ...".
[[nodiscard]] std::string forecast_text(int nodes, const harness::accept::AcceptPlan& plan, bool is_pretended);

}  // namespace tutti::program
