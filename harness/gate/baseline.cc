// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/baseline.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include "harness/gate/pairs.h"
#include "harness/machine/gpu.h"
#include "harness/record/csv_reader.h"
#include "harness/record/row_json.h"
#include "harness/record/unusual.h"
#include "harness/statistics/statistics.h"
#include "harness/text/json_reader.h"
#include "harness/text/read_file.h"

namespace tutti::harness::gate {
namespace {

constexpr std::string_view kHosts = "hosts";  // the column

/// The launches that were measured in the state of the machine in which most were.
std::vector<Row> of_one_state(std::vector<Row> launches) {
  std::vector<double> lines;
  for (const Row& row : launches) {
    if (const auto trip = state_of(row)) lines.push_back(*trip);
  }
  if (lines.empty()) return launches;
  std::ranges::sort(lines);
  const double line = lines[lines.size() / 2];
  std::erase_if(launches, [&](const Row& row) { return !saw_one_state(state_of(row), line); });
  return launches;
}

/// The interval over launches; of too few the range of all that each of them thinks possible.
void set_interval(Row& row, const std::vector<Row>& launches, const Summary& medians) {
  row.time_median = medians.median;
  row.time_ci_low = medians.ci_low;
  row.time_ci_high = medians.ci_high;
  if (medians.ci_low) return;
  row.time_ci_low = medians.min;
  row.time_ci_high = medians.max;
  for (const Row& one : launches) {
    row.time_ci_low = std::min(*row.time_ci_low, one.time_ci_low.value_or(*one.time_median));
    row.time_ci_high = std::max(*row.time_ci_high, one.time_ci_high.value_or(*one.time_median));
  }
}

/// Why a row of the case says nothing of what a gate measures; empty: it does.
std::string why_not_comparable(const Row& row, const std::string& here, const std::string& hosts) {
  if (std::string why = difference_of_machines(row.machine, here); !why.empty()) return why;
  // Where the baseline has a GPU, it is to be this machine's first one.
  if (const std::string gpu = row.gpu.empty() ? "" : gpu_model(0); gpu != row.gpu) {
    return fmt::format("the baseline is of another GPU: '{}', here {}", shown(row.gpu),
                       gpu.empty() ? "there is none" : fmt::format("'{}'", gpu));
  }
  std::vector<Unusual> unusual = unusual_conditions(row);
  const auto its_hosts = row.conditions.find(kHosts);
  if (const std::string of_row = its_hosts == row.conditions.end() ? "" : its_hosts->second; of_row != hosts) {
    const auto text = [](const std::string& list) {
      return list.empty() ? "on one" : fmt::format("on '{}'", shown(list));
    };
    return fmt::format("the baseline has it on other hosts: {}, here {}", text(of_row), text(hosts));
  }
  std::erase_if(unusual, [](const Unusual& one) { return one.column == "gpu" || one.column == kHosts; });
  if (unusual.empty()) return {};
  const Unusual& first = unusual.front();
  return fmt::format("the baseline has it with {} '{}', a gate measures with '{}'", first.column, shown(first.value),
                     first.usual);
}

/// That a row's times can be times: one at least 0, and one above in its interval, which lies above 0.
Status check_times(const Row& row) {
  if (!row.time_median) return {};
  const double median = *row.time_median;
  const double low = row.time_ci_low.value_or(median);
  const double high = row.time_ci_high.value_or(median);
  const bool is_sound = median == 0 || (low > 0 && low <= median && median <= high);
  if (is_sound) return {};
  return error(Code::invalid_argument,
               "it is damaged: of '{}' the time_median is {}, its interval time_ci_low to time_ci_high is {} to {}: "
               "0 < low <= median <= high must hold",
               shown(row.case_id), median, low, high);
}

/// That a CSV has what tells a right result and its time; every version's has.
Status check_columns(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, column_names_of_csv(text));
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  std::vector<std::string_view> missing;
  for (const std::string_view name : {"backend", "algorithm", "verdict", "time_median"}) {
    if (!has(name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  return error(Code::invalid_argument, "it has no column '{}': {}", fmt::join(missing, "', '"),
               has("global_us") ? "it looks like what `tutti run --samples` wrote; --csv writes the rows"
                                : "this is no CSV of `tutti run` or `tutti gate`");
}

/// A row that has all of the case but how its ranks run, or its cadence: not missing, but not comparable. What differs.
std::string otherwise_alike(const std::vector<Row>& rows, const Case& one) {
  const auto has = [&](const Case& variant) {
    const auto same = [&](const Row& row) { return row.backend == kOwnBackend && is_of_case(variant, row.case_id); };
    return std::ranges::any_of(rows, same);
  };
  for (const RanksAs ranks_as : rank_kinds()) {
    Case variant = one;
    variant.ranks_as = ranks_as;
    variant.transport = usual_transport(ranks_as);
    if (has(variant)) return fmt::format("ranks as {}, not {}", to_string(ranks_as), to_string(one.ranks_as));
  }
  for (const Cadence cadence : {Cadence::isolated, Cadence::streaming}) {
    Case variant = one;
    variant.cadence = cadence;
    if (has(variant)) return fmt::format("cadence {}, not {}", to_string(cadence), to_string(one.cadence));
  }
  return {};
}

}  // namespace

std::string difference_of_machines(const std::string& recorded, const std::string& here) {
  if (here.empty() || recorded.empty() || recorded == here) return {};
  return fmt::format(
      "the baseline is of another machine, or of another number of its cores: its fingerprint is '{}', here '{}'",
      shown(recorded), here);
}

void Baseline::set_hosts(std::string hosts) {
  hosts_ = std::move(hosts);
  if (hosts_.empty()) return;
  other_machine_.clear();  // this one need not be one of them
  here_.clear();
}

std::string difference_of(std::string_view recorded_machine_json, const Machine& here) {
  const nlohmann::json machine = parse_json(recorded_machine_json);
  const auto has = [&](const char* key) { return machine.is_object() && machine.contains(key); };
  if (!has("cpu_model") || !machine["cpu_model"].is_string()) return {};
  const auto cores = has("cores_allowed") ? whole_number(machine["cores_allowed"]) : std::nullopt;
  if (!cores) return {};
  const auto model = machine["cpu_model"].get<std::string>();
  if (model == here.cpu_model && *cores == here.cores_allowed) return {};
  return fmt::format("the baseline is of another machine: {} cores of {}, here {} of {}", *cores, shown(model),
                     here.cores_allowed, here.cpu_model);
}

Result<Baseline> Baseline::from_text(std::string_view text) {
  const Machine machine = describe_machine();
  std::string here = fingerprint_of(machine);
  if (!text.starts_with('{')) {
    TUTTI_ASSIGN_OR_RETURN(std::vector<Row> rows, rows_from_csv(text));
    TUTTI_RETURN_IF_ERROR(check_columns(text));
    for (const Row& row : rows) TUTTI_RETURN_IF_ERROR(check_times(row));
    return Baseline(std::move(rows), {}, std::move(here));
  }
  const nlohmann::json record = parse_json(text);
  if (!record.is_object() || !record.contains("rows") || !record["rows"].is_array()) {
    return error(Code::invalid_argument, "neither a CSV nor a JSON record of `tutti run`");
  }
  std::vector<Row> rows;
  for (const nlohmann::json& one : record["rows"]) {
    TUTTI_ASSIGN_OR_RETURN(Row row, row_from_json(one.dump()));
    TUTTI_RETURN_IF_ERROR(check_times(row));
    rows.push_back(std::move(row));
  }
  std::string other = difference_of(record.value("machine", nlohmann::json()).dump(), machine);
  return Baseline(std::move(rows), std::move(other), std::move(here));
}

Result<Baseline> Baseline::read(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMostInResult));
  auto baseline = from_text(text);
  if (baseline.is_ok()) return baseline;
  return error(baseline.status().code(), "'{}': {}", path, baseline.status().message());
}

bool Baseline::names_machine() const {
  return !other_machine_.empty() || std::ranges::any_of(rows_, [](const Row& row) { return !row.machine.empty(); });
}

std::vector<Row> Baseline::launches_of(const Case& one, Evidence& evidence) const {
  if (!other_machine_.empty()) {
    evidence.invalid = other_machine_;
    return {};
  }
  std::vector<Row> launches;
  std::set<std::string> algorithms;
  bool has_unchecked = false;
  std::string unlike;  // why a row of it cannot be compared, the first reason
  for (const Row& row : rows_) {
    if (row.backend != kOwnBackend || !is_of_case(one, row.case_id)) continue;
    std::string why = why_not_comparable(row, here_, hosts_);
    if (why.empty() && !row.starter.empty() && row.starter != kOwnSpawn) {
      why = fmt::format("the baseline measured it in launches of {}: record it with --backends {}", row.starter,
                        kOwnBackend);
    }
    if (!why.empty()) {
      if (unlike.empty()) unlike = why;
      continue;
    }
    algorithms.insert(row.algorithm);
    has_unchecked |= row.verdict == Verdict::unchecked;
    if (row.verdict == Verdict::ok && row.time_median && *row.time_median > 0) launches.push_back(row);
  }
  if (algorithms.size() > 1) {
    evidence.invalid = fmt::format("the baseline has it with {} algorithms ({}): name one in the suite",
                                   algorithms.size(), fmt::join(algorithms, ", "));
    return {};
  }
  if (launches.empty()) {
    const std::string other = otherwise_alike(rows_, one);
    if (has_unchecked) {
      evidence.invalid = "the baseline's result of it was not verified (--check none)";
    } else if (!algorithms.empty()) {
      evidence.missing = "the baseline has no right result of it";
    } else if (!unlike.empty()) {
      evidence.invalid = unlike;
    } else if (!other.empty()) {
      evidence.invalid = fmt::format("the baseline has it with {}", other);
    } else {
      evidence.missing = "the baseline does not have it";
    }
  }
  return of_one_state(std::move(launches));
}

std::optional<Row> Baseline::row_for(const Case& one, Evidence& evidence) const {
  const std::vector<Row> launches = launches_of(one, evidence);
  if (launches.empty()) return std::nullopt;
  std::vector<double> medians;
  for (const Row& row : launches) medians.push_back(*row.time_median);
  Row row = launches[launches.size() / 2];
  row.verdict = Verdict::ok;
  set_interval(row, launches, summarise(medians));
  evidence.recorded_launches = static_cast<int>(launches.size());
  note_disturbances(evidence, launches);
  evidence.doubt_below = std::log(*row.time_median / *row.time_ci_low);
  evidence.doubt_above = std::log(*row.time_ci_high / *row.time_median);
  return row;
}

}  // namespace tutti::harness::gate
