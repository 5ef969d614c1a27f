// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/reports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>

#include <fmt/ranges.h>

#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/report/environment.h"
#include "harness/report/ranks.h"
#include "harness/text/file.h"
#include "harness/text/json_writer.h"
#include "suites/perf/gpu.h"

extern char** environ;

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCompatibleVersion = 3;

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

/// `x.json`, or the first of `x.json.0`, `x.json.1` ... that is not there.
std::string free_path(const std::string& path) {
  if (!std::filesystem::exists(path)) return path;
  for (int i = 0;; ++i) {
    std::string other = fmt::format("{}.{}", path, i);
    if (!std::filesystem::exists(other)) return other;
  }
}

/// Variables that change what runs; values that may be secret are redacted.
Json environment() {
  Json list = Json::array();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    for (const std::string_view prefix : {"NCCL_TESTS_", "TUTTI_"}) {
      if (!text.starts_with(prefix)) continue;
      const std::string_view name = text.substr(0, text.find('='));
      list.push_back(fmt::format("{}={}", name, harness::report::told_value(name, text.substr(name.size() + 1))));
    }
  }
  return list;
}

Json words_of(const std::string& command) {
  Json words = Json::array();
  for (std::size_t start = 0; start < command.size();) {
    const std::size_t end = std::min(command.find('\n', start), command.size());
    words.push_back(command.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

const char* truth(bool value) { return value ? "true" : "false"; }

/// JSON has no word for what is no number.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json placement(const Measurement& one, const Settings& settings) {
  return {{settings.reports_cputime ? "cpu_time" : "time", number(one.time_us)},
          {"alg_bw", number(one.bandwidths.algorithm)},
          {"bus_bw", number(one.bandwidths.bus)},
          {"nwrong", one.wrong ? Json(static_cast<double>(*one.wrong)) : Json(nullptr)}};
}

Json each_iteration(const Measurement& one, int skipped) {
  const EachSummary each = summary_of(one.each_us);
  Json json{{"skipped_iterations", skipped},
            {"min_us", each.least},
            {"max_us", each.most},
            {"avg_us", each.mean},
            {"p50_us", each.p50},
            {"p95_us", each.p95},
            {"p99_us", each.p99},
            {"stdev_us", each.deviation},
            {"cv_pct", each.variation},
            {"times_us", one.each_us}};
  if (!one.each_us_of_processes.empty()) json["per_process_max_times_us"] = one.each_us_of_processes;
  return json;
}

}  // namespace

Result<Reports> Reports::open(const Program& program, const Settings& settings, RunFacts facts) {
  Reports reports(program, settings, std::move(facts));
  if (!settings.csv.empty()) TUTTI_RETURN_IF_ERROR(harness::check_writable(settings.csv));
  reports.console_ =
      harness::Console::beside(settings.csv == harness::kStdoutPath || settings.json == harness::kStdoutPath);
  if (!settings.json.empty()) {
    std::string command = reports.facts_.command;
    std::replace(command.begin(), command.end(), '\n', ' ');
    if (const std::string& split = reports.facts_.split; !split.empty()) {
      const std::size_t value = split.find('=') + 1;
      command = fmt::format("{}'{}' {}", split.substr(0, value), split.substr(value), command);
    }
    std::map<std::string, std::string> versions{{"tutti", reports.facts_.version}};
    if (settings.backend == kNccl) versions[kNccl] = nccl_description();
    TUTTI_ASSIGN_OR_RETURN(
        reports.json_,
        harness::JsonFile::open(settings.json, {.machine_json = machine_to_json(harness::describe_machine()),
                                                .versions = std::move(versions),
                                                .command = std::move(command),
                                                .started = harness::utc_now(),
                                                .environment = harness::library_settings()}));
  }
  if (!settings.csv.empty()) {
    TUTTI_ASSIGN_OR_RETURN(reports.csv_, harness::CsvFile::open(settings.csv));
  }
  if (!settings.rccl_format.empty()) {
    TUTTI_ASSIGN_OR_RETURN(reports.rccl_, RcclResults::open(program, settings, reports.facts_.devices));
  }
  if (!settings.compatible_json.empty()) {
    TUTTI_ASSIGN_OR_RETURN(reports.compatible_file_, harness::OutputFile::open(free_path(settings.compatible_json), 0));
    reports.compatible_ = reports.compatible_head();
    if (reports.compatible_file_->is_replaceable()) TUTTI_RETURN_IF_ERROR(reports.write_compatible());
  }
  return reports;
}

Status Reports::print_opening(std::optional<std::int64_t> reduced_to) {
  std::string text = opening(program_, settings_, facts_.version, facts_.backend);
  for (const Device& device : facts_.devices) text += device_line(device);
  if (reduced_to) text += reduced_line(*reduced_to);
  if (!facts_.has_rows) {
    text += fmt::format("#\n# hypercube needs a power of two of ranks, these are {}: no row\n",
                        fmt::join(facts_.group_sizes, " and "));
  }
  console_.print(text + table_header(settings_));
  return console_.failure();
}

Status Reports::add(const Report& report) {
  std::string text;
  for (const std::string& comment : report.comments) text += fmt::format("# {}\n", comment);
  text += row_text(report.row, settings_, settings_.reports_timestamps ? local_time() : std::string());
  std::vector<harness::Row> records = report.records;
  for (harness::Row& row : records) {
    stamp_.put_into(row);
    if (csv_) note(csv_->write(row));
  }
  if (json_) note(json_->write(records));
  if (compatible_file_) write_compatible_row(report.row);
  if (rccl_) note(rccl_->add(report.row));
  console_.print(text);  // last: a row that nobody can read is in the files
  for (const std::string& diagnosis : report.diagnoses) {
    harness::to_stderr(fmt::format("{}: {}\n", program_.name, diagnosis));
  }
  return console_.failure();
}

void Reports::write_compatible_row(const TableRow& one) {
  Json row{{"size", one.size.bytes},
           {"count", one.size.count},
           {"type", one.dtype},
           {"redop", one.op},
           {"root", fmt::format("{:>6}", one.root)},
           {"out_of_place", placement(one.out, settings_)}};
  if (settings_.times_each) row["out_of_place_per_iter"] = each_iteration(one.out, settings_.skipped);
  row["in_place"] = placement(one.in, settings_);
  if (settings_.times_each) row["in_place_per_iter"] = each_iteration(one.in, settings_.skipped);
  row["actual_iterations"] = settings_.iterations;
  row["experiment_name"] = "";
  compatible_["results"].push_back(std::move(row));
  if (compatible_file_->is_replaceable()) note(write_compatible());
}

Status Reports::conclude(const Trailer& trailer, const MemoryUse& memory) {
  console_.print(trailer_text(trailer) + stragglers_ +
                 closing(program_, settings_.reports_memory ? std::optional(memory) : std::nullopt));
  if (json_) note(json_->finish());
  if (json_) note(json_->end());
  note(console_.failure());
  if (rccl_) note(rccl_->write());
  if (!compatible_file_) return failure_;
  compatible_["out_of_bounds"] = {{"count", trailer.failed_checks},
                                  {"okay", !trailer.average ? "unchecked" : truth(trailer.failed_checks == 0)}};
  compatible_["average_bus_bandwidth"] = {{"bandwidth", trailer.average ? number(*trailer.average) : Json()},
                                          {"okay", trailer.is_enough ? truth(*trailer.is_enough) : "unchecked"}};
  compatible_["errors"] = Json::array();
  compatible_["end_time"] = local_time();
  note(write_compatible());
  return failure_;
}

void Reports::add_init(const WalkResult& result) {
  if (!json_) return;
  const std::size_t ranks = facts_.devices.size();
  note(json_->set_measurement(fmt::format("init_s.P{}", ranks), result.ready_s));
  if (result.first_call_us == 0) return;
  note(json_->set_measurement(fmt::format("first_call_us.P{}.{}", ranks, settings_.backend), result.first_call_us));
}

void Reports::add_ranks(const harness::RankTally& tally) {
  if (tally.came.operations == 0) return;
  std::vector<std::string> hosts;
  for (const Device& device : facts_.devices) hosts.push_back(device.hostname);
  const std::vector<harness::RankResult> results = harness::rank_results(tally, hosts);
  stragglers_ = harness::straggler_lines(results);
  if (json_) note(json_->set_ranks(fmt::format("P{}", results.size()), harness::ranks_json(results)));
}

void Reports::give_up() {
  if (json_) note(json_->end());
}

void Reports::note(Status status) {
  if (failure_.is_ok()) failure_ = std::move(status);
}

Json Reports::compatible_head() const {
  Json devices = Json::array();
  for (const Device& device : facts_.devices) {
    devices.push_back({{"rank", device.rank},
                       {"group", device.group},
                       {"pid", device.pid},
                       {"hostname", device.hostname},
                       {"device", device.device},
                       {"device_hex", device.bus},
                       {"device_info", device.model}});
  }
  Json config{{"nthreads", settings_.threads},
              {"ngpus", settings_.devices},
              {"minimum_bytes", settings_.min_bytes},
              {"maximum_bytes", settings_.max_bytes}};
  if (settings_.factor > 1) config["step_factor"] = settings_.factor;
  if (settings_.factor == 1) config["step_bytes"] = settings_.step_bytes;
  config.update({{"warmup_iters", settings_.warm_up},
                 {"iterations", settings_.iterations},
                 {"aggregated_iterations", settings_.aggregated},
                 {"validation", settings_.checks},
                 {"graph", settings_.launches},
                 {"blocking_collectives", truth(settings_.blocking != 0)},
                 {"per_iter_timing", truth(settings_.times_each)},
                 {"per_iter_skip", settings_.skipped},
                 {"parallel_init", "false"},
                 {"devices", std::move(devices)}});
  return {{"version", kCompatibleVersion}, {"start_time", local_time()},          {"args", words_of(facts_.command)},
          {"env", environment()},          {"nccl_version", facts_.nccl_version}, {"config", std::move(config)},
          {"results", Json::array()}};
}

Status Reports::write_compatible() { return compatible_file_->replace(harness::json_text(compatible_, 2) + "\n"); }

}  // namespace tutti::perf
