// SPDX-License-Identifier: Apache-2.0
// SessionWalk: one runner's walk through the cells of a session that measures, checks, or puts the verifier on trial.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/faults/injector.h"
#include "harness/measure/replay.h"
#include "harness/session/contention.h"
#include "harness/session/measuring.h"
#include "harness/session/session.h"
#include "harness/session/systems.h"

namespace tutti::harness::session {

class SessionWalk {
 public:
  /// What the walk works with, all of which outlives it; `cores`: see cores_together.
  struct Place {
    const Topology& topology;
    Runner& runner;
    Domain& domain;
    const Send& send;
    int cores;
    const AcrossPlace* across;  ///< null: all ranks are on one machine
  };
  SessionWalk(const SessionSpec& spec, const Place& place);

  /// From opening the systems to closing them. All runners call it. Errors: those after which the job is over.
  Status run();

 private:
  Status report(std::string_view type, std::string_view text) {
    return runner_.index() == 0 ? send_(type, text) : Status();
  }
  Status open();
  /// Reports the rows of a cell, or what became of its faults.
  Status run_cell(std::size_t index);
  /// A case that some runner cannot run is a row with the reason, on no runner run, and the walk goes on.
  Result<std::vector<Row>> rows_of(std::size_t index);
  /// What a cell needs, against what is there: the same on all runners. Cells that need little are not held against it.
  struct Prospect {
    Status refusal = {};    ///< why no case of the cell can be begun
    bool has_limit = true;  ///< there is memory for the cell's limit too
  };
  Status foresee(std::size_t index, Prospect& prospect);
  Result<Variant> make_ready(const Case& one, std::uint32_t number);
  Result<std::vector<Row>> check(std::vector<Variant>& variants);
  /// The same case once more, of a backend whose plans are not proved; empty where a check needs none.
  Result<std::optional<Variant>> other_of(const Variant& variant);
  /// The cells as the calls of a trace: reports the rows of each step, and of the whole.
  Status replay_trace(const MeasureTask& task);
  /// What the calls of a trace are, on each system alike.
  struct Replayed {
    std::vector<std::string> steps;   ///< and the whole
    std::vector<std::int64_t> bytes;  ///< of each of these
    std::vector<ReplayCall> all;      ///< in their order
    std::vector<std::size_t> first;   ///< of each variant: its first call
  };
  [[nodiscard]] Replayed calls_of_trace(const MeasureTask& task) const;
  /// Whether there is memory for all buffers of all systems at once: no reason. Errors: those of the runner.
  [[nodiscard]] Result<Reason> lacks_memory_for(const Replayed& calls);
  /// The system that has this place in each cell.
  [[nodiscard]] Result<ReplaySystem> system_for_replay(std::size_t place, const Replayed& calls);
  Status try_faults(const FaultsTask& task, const Case& one);
  /// How well the clocks of several machines were known.
  Status report_clocks();
  Status report_order(const Order& order);

  const SessionSpec& spec_;
  const Topology& topology_;
  Runner& runner_;
  const Send& send_;
  CommunicatorOptions options_;
  Systems systems_;
  std::unique_ptr<Injector> injector_;      ///< of a session of faults
  std::optional<Measuring> measuring_;      ///< of a session that measures
  std::unique_ptr<Contention> contention_;  ///< of one whose cells are contentions
};

}  // namespace tutti::harness::session
