// SPDX-License-Identifier: Apache-2.0
// `tutti run --trace FILE`: the calls of a trace in the place of a sweep.
#pragma once

#include <string>

#include "harness/session/spec.h"
#include "src/options.h"
#include "src/run_plan.h"

namespace tutti::program {

struct TraceOptions {
  std::string file;         ///< empty: there is no trace
  std::string gaps = "on";  ///< or off
};

/// Adds the options to `command`. Requires: `options` outlives it.
void add_trace_options(CLI::App& command, TraceOptions& options);
/// What was given beside the trace and has no meaning there. Errors: invalid_argument naming the option.
[[nodiscard]] Status check_beside_trace(const CLI::App& command, const TraceOptions& options);
/// A cell for each call, in their order; `task` is told what else there is of the trace. Errors: those of read_trace,
/// invalid_argument for settings that no trace is replayed with.
[[nodiscard]] Result<RunPlan> trace_plan_of(const TraceOptions& options, Settings& settings,
                                            harness::MeasureTask& task);

}  // namespace tutti::program
