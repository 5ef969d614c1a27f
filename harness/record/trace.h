// SPDX-License-Identifier: Apache-2.0
// A trace: the calls of a program in their order, from a CSV whose first line names the columns. results/README.md
// says what stands in each. Every rank makes the same calls.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cases/case.h"
#include "harness/record/record.h"
#include "impl/types/status.h"

namespace tutti::harness::record {

inline constexpr std::string_view kWholeTrace = "whole";  ///< the step of the row of all steps
inline constexpr std::size_t kMostTraceCalls = 10000;
inline constexpr std::chrono::seconds kMostTraceGap{60};

struct TraceCall {
  std::string step;              ///< calls of one step follow one another
  Cell cell;                     ///< the transport and what the ranks are is not the file's to say
  std::chrono::nanoseconds gap;  ///< before the call, on each rank
};

struct Trace {
  std::string name;  ///< trace-<hash of the calls>
  std::vector<TraceCall> calls;
};

/// For so many ranks. Errors: invalid_argument naming the line, the column, the value, what is allowed and the nearest
/// right one.
[[nodiscard]] Result<Trace> parse_trace(std::string_view text, int ranks);
/// Errors: those of parse_trace with the path before them, and those of reading.
[[nodiscard]] Result<Trace> read_trace(const std::string& path, int ranks);

/// Of a step of the trace `name`, or of the whole, on the system of `like`, one of its calls: what is known before
/// anything is measured. `bytes`: of all its calls together.
[[nodiscard]] Row row_of_step(const Case& like, std::string_view name, std::string_view step, std::int64_t bytes);

}  // namespace tutti::harness::record
