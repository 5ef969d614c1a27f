// SPDX-License-Identifier: Apache-2.0
// nccl-tests' table as text, column by column: scripts read it by position. Pure functions; nothing is printed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/perf/flags.h"
#include "suites/perf/programs.h"

namespace tutti::perf {

/// One placement of a row.
struct Measurement {
  double time_us = 0;
  Bandwidths bandwidths;
  std::optional<std::int64_t> wrong;                      ///< empty: not checked
  std::vector<double> each_us;                            ///< with -I, the skipped ones left out
  std::vector<std::vector<double>> each_us_of_processes;  ///< the same by process, for -J; empty where there is one
};

struct TableRow {
  Size size;
  std::string_view dtype;
  std::string_view op;  ///< "none", or empty for hypercube
  int root = -1;
  Measurement out;
  Measurement in;
};

/// What -I says of the times of single operations; percentiles by nearest rank, the deviation of the whole population.
struct EachSummary {
  double least = 0;
  double most = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double deviation = 0;
  double variation = 0;  ///< deviation / mean [%]
};
/// Zeros of no times.
[[nodiscard]] EachSummary summary_of(std::vector<double> times);

/// One rank, as the list of devices shows it.
struct Device {
  int rank = 0;
  int group = 0;
  int pid = 0;
  std::string hostname;
  int device = 0;     ///< the rank's, or the GPU's number
  std::string bus;    ///< "0000:00:00", or the GPU's
  std::string model;  ///< the processor's name, or the GPU's
};

/// The lines from the first to the list of devices; `backend` is what the line about it says.
[[nodiscard]] std::string opening(const Program& program, const Settings& settings, std::string_view version,
                                  std::string_view backend);
[[nodiscard]] std::string device_line(const Device& device);
[[nodiscard]] std::string reduced_line(std::int64_t max_bytes);
/// The three lines over the table.
[[nodiscard]] std::string table_header(const Settings& settings);
/// A line with its end; `timestamp` is empty without -S.
[[nodiscard]] std::string row_text(const TableRow& row, const Settings& settings, std::string_view timestamp);

struct Trailer {
  std::int64_t failed_checks = 0;
  std::optional<double> average;  ///< of all bus bandwidths; empty: there was no row
  std::optional<bool> is_enough;  ///< of NCCL_TESTS_MIN_BW; empty: not asked for
};
[[nodiscard]] std::string trailer_text(const Trailer& trailer);

/// What -M shows.
struct MemoryUse {
  std::string_view of = "CPU";
  double initial_bytes = 0;     ///< before any buffer
  double buffer_bytes = 0;      ///< at most, at one time
  double collective_bytes = 0;  ///< that came while operations ran
};
[[nodiscard]] std::string closing(const Program& program, const std::optional<MemoryUse>& memory);

/// The number in at most `width` characters with as many of 2, 1, 0 decimals as fit, else with an exponent.
[[nodiscard]] std::string fitted(double value, std::size_t width);

}  // namespace tutti::perf
