// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>

namespace tutti::perf {
namespace {

constexpr std::size_t kTimeWidth = 7;
constexpr std::size_t kBandwidthWidth = 6;

/// i_min i_max i_p99 i_cv%.
std::string each_text(const std::vector<double>& times) {
  const EachSummary each = summary_of(times);
  std::string text;
  for (const double value : {each.least, each.most, each.p99, each.variation}) {
    text += fmt::format("  {:>7}", fitted(value, kTimeWidth));
  }
  return text;
}

/// Where nothing was checked the contract's row is one column short as a whole, so the last placement's.
std::string measurement_text(const Measurement& one, const Settings& settings, bool is_last) {
  std::string text =
      fmt::format("  {:>7}  {:>6}  {:>6}", fitted(one.time_us, kTimeWidth),
                  fitted(one.bandwidths.algorithm, kBandwidthWidth), fitted(one.bandwidths.bus, kBandwidthWidth));
  text += one.wrong ? fmt::format("  {:>6}", *one.wrong) : fmt::format("  {:>{}}", "N/A", is_last ? 5 : 6);
  return settings.times_each ? text + each_text(one.each_us) : text;
}

}  // namespace

EachSummary summary_of(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  const auto nearest = [&](double share) { return times[static_cast<std::size_t>(std::ceil(share * count)) - 1]; };
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  const double deviation = std::sqrt(squares / count);
  return {.least = times.front(),
          .most = times.back(),
          .mean = mean,
          .p50 = times[times.size() / 2],
          .p95 = nearest(0.95),
          .p99 = nearest(0.99),
          .deviation = deviation,
          .variation = mean > 0 ? 100 * deviation / mean : 0};
}

std::string fitted(double value, std::size_t width) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) return text;
  }
  std::string text = fmt::format("{:.1e}", value);
  return text.size() <= width ? text : fmt::format("{:.0e}", value);
}

std::string opening(const Program& program, const Settings& settings, std::string_view version,
                    std::string_view backend) {
  const bool by_factor = settings.factor > 1;
  const std::string_view where = settings.device == harness::RunsOn::host ? "threads as thread blocks"
                                 : settings.has_one_host()                ? "GPUs"
                                                                          : "CPU ranks";
  std::string text = fmt::format("# {}: the tests of nccl-tests on {}\n", version, where);
  text += fmt::format("# Collective test starting: {}\n", program.name);
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} graph: {} unalign: {}\n",
      settings.threads, settings.devices, settings.min_bytes, settings.max_bytes,
      by_factor ? settings.factor : settings.step_bytes, by_factor ? "factor" : "bytes", settings.warm_up,
      settings.iterations, settings.aggregated, settings.checks, settings.launches, settings.unaligned);
  if (settings.blocking != 0) text += fmt::format("# Blocking Enabled: mode {}\n", settings.blocking);
  if (settings.times_each) text += fmt::format("# Per-Iteration Report: without the first {}\n", settings.skipped);
  for (const std::string& note : settings.notes) text += fmt::format("# {}\n", note);
  text += fmt::format("# Backend: {}\n#\n# Using devices\n", backend);
  return text;
}

std::string device_line(const Device& device) {
  return fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n", device.rank, device.group,
                     device.pid, device.hostname, device.device, device.bus, device.model);
}

std::string reduced_line(std::int64_t max_bytes) {
  return fmt::format("#\n# Reducing maxBytes to {} due to memory limitation\n", max_bytes);
}

std::string table_header(const Settings& settings) {
  const std::string_view time = settings.reports_cputime ? "cputime" : "time";
  const std::string each =
      settings.times_each ? fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%") : "";
  const std::string units =
      settings.times_each ? fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)") : "";
  const std::string stamp = settings.reports_timestamps ? fmt::format("  {:>19}", "timestamp") : "";
  const std::string names = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}{}", time, "algbw", "busbw", "#wrong", each);
  const std::string under = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}{}", "(us)", "(GB/s)", "(GB/s)", "", units);
  const std::string gap(each.size(), ' ');
  std::string text = "#\n";
  text += fmt::format("#{:61} out-of-place{}                       in-place          {}\n", "", gap, "");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} {}\n", "size", "count", "type", "redop", "root", names,
                      names, stamp);
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} \n", "(B)", "(elements)", "", "", "", under, under);
  return text;
}

std::string row_text(const TableRow& row, const Settings& settings, std::string_view timestamp) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}{}\n", row.size.bytes, row.size.count, row.dtype, row.op,
                     row.root, measurement_text(row.out, settings, false), measurement_text(row.in, settings, true),
                     timestamp.empty() ? "" : "  ", timestamp);
}

std::string trailer_text(const Trailer& trailer) {
  if (!trailer.average) return "# Nothing was measured: no row\n";
  std::string text = fmt::format("# Out of bounds values : {} {}\n", trailer.failed_checks,
                                 trailer.failed_checks == 0 ? "OK" : "FAILED");
  const std::string_view verdict = !trailer.is_enough ? "" : *trailer.is_enough ? "OK" : "FAILED";
  return text + fmt::format("# Avg bus bandwidth    : {:g} {}\n", *trailer.average, verdict);
}

std::string closing(const Program& program, const std::optional<MemoryUse>& memory) {
  std::string text = fmt::format("#\n# Collective test concluded: {}\n", program.name);
  if (memory) {
    const auto mib = [](double bytes) { return bytes / (1 << 20); };
    text += fmt::format(
        "# {} memory usage     : Initialization {:.2f} MiB | User-Allocated {:.2f} MiB | Collective {:.2f} MiB | Total "
        " "
        "{:.2f} MiB\n",
        memory->of, mib(memory->initial_bytes), mib(memory->buffer_bytes), mib(memory->collective_bytes),
        mib(memory->initial_bytes + memory->buffer_bytes + memory->collective_bytes));
  }
  return text + "#\n\n";
}

}  // namespace tutti::perf
