// SPDX-License-Identifier: Apache-2.0
// Results in the forms of programs that keep them: Prometheus, github-action-benchmark and Bencher. Launches of a case
// are joined: its time is the median of theirs. Only right results have a time there.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "harness/record/record.h"
#include "harness/report/result_file.h"

namespace tutti::harness::report {

/// The text form (https://prometheus.io/docs/instrumenting/exposition_formats), for node_exporter's textfile collector.
/// Names and labels are those of NCCL's Inspector where they fit: nccl_bus_bandwidth_gbs,
/// nccl_collective_exec_time_microseconds, nccl_p2p_...; of tutti alone are the interval, and tutti_result, which says
/// every case's verdict.
[[nodiscard]] std::string prometheus_of(std::span<const Row> rows);

/// The `customSmallerIsBetter` of github-action-benchmark: a list of name, unit (us), value, range, extra.
[[nodiscard]] std::string github_action_benchmark_of(std::span<const Row> rows);

/// Bencher Metric Format: by case, `latency` in ns and `throughput` in bytes/s of the bus bandwidth, with their bounds.
[[nodiscard]] std::string bencher_of(std::span<const Row> rows);

/// The rows of a result for these forms. Of a gate or a comparison: a row for each judged cell that was timed on this
/// side, its verdict as a mark.
[[nodiscard]] std::vector<Row> rows_for_export(const ResultFile& result);
/// Whether a row has a time for these forms.
[[nodiscard]] bool has_time(const Row& row);

}  // namespace tutti::harness::report
