// SPDX-License-Identifier: Apache-2.0
// Measuring: what a session with a MeasureTask does beside walking through its cells (walk.h). It reports the
// facts that its numbers rest on, shares out the time, adds the machine's limit to each cell, and reports every sample.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/machine/clock.h"
#include "harness/measure/barriers.h"
#include "harness/measure/budget.h"
#include "harness/measure/cell.h"
#include "harness/measure/cell_watch.h"
#include "harness/measure/contention.h"
#include "harness/measure/crowd.h"
#include "harness/measure/device_limit.h"
#include "harness/measure/limit.h"
#include "harness/measure/link_limit.h"
#include "harness/session/session.h"
#include "harness/session/systems.h"

namespace tutti::harness::session {

class Measuring {
 public:
  /// All of them outlive it.
  struct Place {
    const Topology& topology;
    Runner& runner;
    Domain& domain;
    Systems& systems;
    const Send& send;
    const AcrossPlace* across;  ///< null: all ranks are on one machine
  };
  Measuring(const SessionSpec& spec, const MeasureTask& task, const Place& place);

  /// Before the first cell: opens what samples start with, and reports the facts. All runners call it, as all that
  /// follows. Errors: those of the runner, of the systems and of `send`.
  Status begin();
  /// That samples of this backend can start. Errors: unavailable with the reason.
  [[nodiscard]] Status has_start(const std::string& backend) const { return barriers_.has_start(backend); }
  /// What readings of the clock differ by; the same on all runners.
  [[nodiscard]] double tick_us() const { return clock_.tick_ns * 1e-3; }
  /// Before the memory of cell `index`, whose buffers are `bytes` bytes, is touched. `refusal`: that it cannot be begun
  /// in what is left of the budget. Errors: those of the runner.
  Status begin_cell(std::size_t index, double bytes, Status& refusal);
  /// Rows of the session's cell `index`, of which `variants` are what can run: at least one. `has_limit`: there is
  /// memory of the host for its limit. Errors: as begin.
  [[nodiscard]] Result<std::vector<Row>> measure(std::vector<Variant>& variants, std::size_t index, bool has_limit);
  /// What the groups of a contention took, of the session's cell `index`: two rows of this runner's group for each
  /// variant, alone and together. Of a group only its first runner has them. Errors: as begin.
  [[nodiscard]] Result<std::vector<Row>> contend(const ContentionPlace& place, std::vector<Variant>& variants,
                                                 std::size_t index);

 private:
  Status report(std::string_view type, std::string_view text) {
    return runner_.index() == 0 ? send_(type, text) : Status();
  }
  Status report_facts();
  /// Sets watched_; `cores` are those of each runner. All runners call it. Errors: those of the runner.
  Status find_watched(const std::vector<std::vector<int>>& cores);
  /// Once on each machine, if there is to be one. Errors: those of the crowd.
  Status start_crowd();
  Status report_first_calls();
  Status report_samples(const Case& one, std::span<const Sample> samples);
  Status report_ranks(const Case& one, std::span<const Sample> samples);
  /// CUDA's numbers of those that the ranks of this process lie on.
  [[nodiscard]] std::vector<int> gpus_of_ranks() const;
  /// For cell `index`: what is left of the budget, in equal parts.
  [[nodiscard]] std::int64_t time_ns(std::size_t index) const;
  /// The limits of a cell, one for each kind of memory that its variants have, and how each is measured.
  struct Limits {
    std::vector<Variant> variants;
    std::vector<std::string> ways;
  };
  /// Each is chosen in its share of the cell's time. `on_runner`: there is memory of the host for one.
  [[nodiscard]] Result<Limits> limits_beside(const std::vector<Variant>& variants, std::size_t index, bool on_runner,
                                             std::int64_t most_ns);
  /// The name of a rank's host; empty: hosts have none.
  [[nodiscard]] std::string host_of(int rank) const;
  [[nodiscard]] double floor_us_of(const Case& one) const;
  [[nodiscard]] CellOptions cell_options(std::size_t index, std::vector<std::string> limits, std::int64_t most_ns);

  const SessionSpec& spec_;
  const MeasureTask& task_;
  const Topology& topology_;
  Runner& runner_;
  Domain& domain_;
  Systems& systems_;
  const Send& send_;
  const AcrossPlace* across_;
  Barriers barriers_;
  std::optional<LimitBackend> limit_;        ///< of buffers in the host's memory
  std::optional<DeviceLimit> device_limit_;  ///< of those in GPUs'
  std::unique_ptr<LinkLimit> link_limit_;    ///< of what goes between machines
  std::unique_ptr<Crowd> crowd_;             ///< of the first runner of a machine
  WatchedPlace watched_;
  std::map<std::string, double> floors_ns_;  ///< see Barriers::measure_floors
  ClockFacts clock_;
  double ready_s_ = 0;  ///< from the start of the oldest process until all systems were open on all ranks
  std::map<std::string, std::int64_t> first_calls_ns_;  ///< by backend; runner 0's
  std::size_t told_first_calls_ = 0;
  Budget budget_;
};

}  // namespace tutti::harness::session
