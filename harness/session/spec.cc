// SPDX-License-Identifier: Apache-2.0
// The specification of a session as text, and the memory that follows from it.
#include "harness/session/spec.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "harness/backends/loader.h"
#include "harness/cases/sweep.h"
#include "harness/exchange/added.h"
#include "harness/machine/clock.h"
#include "harness/text/json_reader.h"

namespace tutti::harness::session {
namespace {

// What a rank takes before its first cell: 11 MiB were seen of four ranks, 40 MiB with Open MPI.
constexpr double kOfRank = 4 * (1 << 20);
constexpr double kOfReference = 12 * (1 << 20);

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> kTasks{"measure", "check", "soak",
                                                 "faults",  "train", "repeat"};  // by the variant's index
static_assert(std::variant_size_v<decltype(SessionSpec::task)> == kTasks.size());

template <class Record>
consteval int visited() {
  int fields = 0;
  visit_fields(std::type_identity<Record>(), [&](const char*, auto) { ++fields; });
  return fields;
}
constexpr int kUnsent = 2;  // the folders
/// Stops compiling where a field was added, or left out of visit_fields: both have as many.
[[maybe_unused]] void count_fields(const SessionSpec& spec, const MeasureTask& measure, const CheckTask& check,
                                   const SoakTask& soak, const FaultsTask& faults, const TrainTask& train) {
  [[maybe_unused]] const auto& [task, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15] = spec;
  [[maybe_unused]] const auto& [m1, m2, m3, m4, m5, m6, m7] = measure;
  [[maybe_unused]] const auto& [c1] = check;
  [[maybe_unused]] const auto& [o1, o2] = soak;
  [[maybe_unused]] const auto& [f1] = faults;
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11] = train;
  static_assert(visited<SessionSpec>() == 15 - kUnsent && visited<MeasureTask>() == 7 && visited<CheckTask>() == 1);
  static_assert(visited<SoakTask>() == 2 && visited<FaultsTask>() == 1 && visited<TrainTask>() == 11);
}

Status no_whole_number(std::string_view word) {
  return error(Code::invalid_argument, "the job's specification: '{}' is no whole number", shown(word));
}

// Both ways for each type of a field. `read` throws the library's exceptions, which read_json catches.

template <class Number>
requires std::is_integral_v<Number> Json written(Number number) { return number; }
Status read_value(std::string_view /*word*/, const Json& json, bool& value) {
  json.get_to(value);
  return {};
}
/// The library makes integers of fractions and of truth values, and wraps what is too large.
template <class Number>
requires std::is_integral_v<Number> Status read_value(std::string_view word, const Json& json, Number& number) {
  if (!json.is_number()) json.get_to(number);  // its error names the type
  if (!json.is_number_integer()) return no_whole_number(word);
  const bool fits = json.is_number_unsigned() ? std::in_range<Number>(json.get<std::uint64_t>())
                                              : std::in_range<Number>(json.get<std::int64_t>());
  if (!fits) return error(Code::invalid_argument, "the job's specification: '{}' is out of range", shown(word));
  number = json.get<Number>();
  return {};
}

Json written(const std::string& text) { return text; }
Status read_value(std::string_view /*word*/, const Json& json, std::string& text) {
  json.get_to(text);
  return {};
}

Json written(const std::vector<std::string>& texts) { return texts; }
Status read_value(std::string_view /*word*/, const Json& json, std::vector<std::string>& texts) {
  json.get_to(texts);
  return {};
}

Json written(const std::vector<std::int64_t>& numbers) { return numbers; }
Status read_value(std::string_view word, const Json& json, std::vector<std::int64_t>& numbers) {
  if (!json.is_array()) json.get_to(numbers);  // its error names the type
  for (const Json& number : json) TUTTI_RETURN_IF_ERROR(read_value(word, number, numbers.emplace_back()));
  return {};
}

Json written(std::chrono::nanoseconds duration) { return duration.count(); }
Status read_value(std::string_view word, const Json& json, std::chrono::nanoseconds& duration) {
  std::int64_t count = 0;
  TUTTI_RETURN_IF_ERROR(read_value(word, json, count));
  duration = std::chrono::nanoseconds(count);
  return {};
}

Json written(RanksAs ranks_as) { return to_string(ranks_as); }
Status read_value(std::string_view /*word*/, const Json& json, RanksAs& ranks_as) {
  TUTTI_ASSIGN_OR_RETURN(ranks_as, parse_ranks_as(json.get<std::string>()));
  return {};
}

template <class T>
Json written(const std::optional<T>& value) {
  return value ? written(*value) : Json();
}
template <class T>
Status read_value(std::string_view word, const Json& json, std::optional<T>& value) {
  return json.is_null() ? Status() : read_value(word, json, value.emplace());
}

/// Those that are not as usual, by their options.
Json written(const Conditions& values) {
  Json json = Json::object();
  for (const Condition& condition : conditions()) {
    if (const std::string text = condition.text(values); text != condition.usual) json[condition.option] = text;
  }
  return json;
}
Status read_value(std::string_view /*word*/, const Json& json, Conditions& values) {
  for (const auto& [option, text] : json.items()) {
    const Condition* const condition = condition_of_option(option);
    if (condition == nullptr) {
      return error(Code::invalid_argument, "the job's specification: there is no condition '{}'", shown(option));
    }
    TUTTI_RETURN_IF_ERROR(condition->read(values, text.get<std::string>()));
  }
  return {};
}

/// Ids, the numbers of those counts that a file has, which an id names by their hash, and the texts of added
/// algorithms.
Json written(const std::vector<std::vector<Case>>& cells) {
  Json ids = Json::array(), counts = Json::object(), added = Json::object();
  for (const std::vector<Case>& cell : cells) {
    Json& of_cell = ids.emplace_back(Json::array());
    for (const Case& one : cell) {
      of_cell.push_back(case_id(one));
      if (one.counts.pattern == Pattern::file) counts[one.counts.name] = one.counts.numbers;
      if (const std::string* text = exchange::added_text(one.algorithm)) added[one.algorithm] = *text;
    }
  }
  return {{"ids", std::move(ids)}, {"counts", std::move(counts)}, {"added", std::move(added)}};
}

Status read_counts(const Json& json, std::vector<Counts>& files) {
  for (const auto& [name, numbers] : json.items()) {
    Counts& counts = files.emplace_back(Counts{.pattern = Pattern::file, .name = name});
    for (const auto& [index, number] : numbers.items()) {
      TUTTI_RETURN_IF_ERROR(read_value(index, number, counts.numbers.emplace_back()));
      if (counts.numbers.back() >= 0 && counts.numbers.back() <= kMostCount) continue;
      return error(Code::invalid_argument, "the job's specification: a count of '{}' is not between 0 and {}",
                   shown(name), kMostCount);
    }
  }
  return {};
}

Status read_value(std::string_view /*word*/, const Json& json, std::vector<std::vector<Case>>& cells) {
  std::vector<Counts> files;
  TUTTI_RETURN_IF_ERROR(read_counts(json.value("counts", Json::object()), files));
  const Json added = json.value("added", Json::object());
  for (const auto& [name, text] : added.items()) {
    TUTTI_RETURN_IF_ERROR(exchange::add_text(name, text.get<std::string>()));
  }
  for (const Json& ids : json.at("ids")) {
    std::vector<Case>& cell = cells.emplace_back();
    for (const Json& id : ids) {
      TUTTI_ASSIGN_OR_RETURN(Case one, parse_case_id(id.get<std::string>()));
      TUTTI_RETURN_IF_ERROR(complete_counts(one, files));
      cell.push_back(std::move(one));
    }
  }
  return {};
}

template <class Record>
void write_fields(const Record& record, Json& json) {
  visit_fields(std::type_identity<Record>(),
               [&](const char* word, auto member) { json[word] = written(record.*member); });
}

/// The words that it knows leave `json`.
template <class Record>
Status read_fields(Json& json, Record& record) {
  Status status;
  visit_fields(std::type_identity<Record>(), [&](const char* word, auto member) {
    const auto field = json.find(word);
    if (field == json.end() || !status.is_ok()) return;
    status = read_value(word, *field, record.*member);
    json.erase(field);
  });
  return status;
}

/// Makes the alternative that `name` says the variant's value.
template <std::size_t index = 0>
Status choose_task(std::string_view name, SessionSpec& spec) {
  if constexpr (index < kTasks.size()) {
    if (name != kTasks[index]) return choose_task<index + 1>(name, spec);
    spec.task.emplace<index>();
    return {};
  } else {
    return error(Code::invalid_argument, "the job's specification: there is no task '{}'", shown(name));
  }
}

/// Shared objects are named after transports and backends. A name with a slash would be a file anywhere.
Status check_names(const SessionSpec& spec) {
  std::vector<std::string> names;
  if (!spec.transport.empty()) names.push_back(spec.transport);
  for (const auto* const more : {&spec.references, &spec.on_gpus, &spec.twins}) {
    for (const std::string& name : *more) names.emplace_back(is_system(name) ? backend_of(name) : name);
  }
  const auto wrong = std::ranges::find_if_not(names, is_name);
  if (wrong == names.end()) return {};
  return error(
      Code::invalid_argument,
      "the job's specification: '{}' is no name of a transport or backend: it has letters, digits, '_' and '-'",
      shown(*wrong));
}

Result<SessionSpec> session_of(Json json) {
  SessionSpec spec;
  TUTTI_RETURN_IF_ERROR(read_fields(json, spec));
  TUTTI_RETURN_IF_ERROR(choose_task(json.value("task", ""), spec));
  json.erase("task");
  TUTTI_RETURN_IF_ERROR(std::visit([&](auto& task) { return read_fields(json, task); }, spec.task));
  TUTTI_RETURN_IF_ERROR(check_names(spec));
  if (json.empty()) return spec;
  return error(Code::invalid_argument, "the job's specification: nothing is called '{}'", shown(json.begin().key()));
}

}  // namespace

std::optional<std::uint64_t> SessionSpec::order_seed() const {
  if (const auto* const check = as<CheckTask>()) return check->order_seed;
  if (const auto* const soak = as<SoakTask>()) return soak->order_seed;
  return std::nullopt;
}

std::string to_json(const SessionSpec& spec) {
  Json json{{"task", kTasks[spec.task.index()]}};
  write_fields(spec, json);
  std::visit([&](const auto& task) { write_fields(task, json); }, spec.task);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<SessionSpec> session_from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "the job's specification", text, session_of);
}

Result<SessionSpec> session_in_payload(std::string_view payload) {
  TUTTI_ASSIGN_OR_RETURN(SessionSpec spec, session_from_json(payload));
  spec.backend_directories = directories_named_by("TUTTI_BACKENDS");
  spec.transport_directories = directories_named_by("TUTTI_TRANSPORTS");
  return spec;
}

std::uint32_t first_number_of(const SessionSpec& spec, std::size_t cell) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < cell; ++i) number += spec.cells[i].size();
  return static_cast<std::uint32_t>(number);
}

const Case* case_numbered(const SessionSpec& spec, std::uint32_t number) {
  for (const std::vector<Case>& cell : spec.cells) {
    if (number < cell.size()) return &cell[number];
    number -= static_cast<std::uint32_t>(cell.size());
  }
  return nullptr;
}

std::uint32_t number_of_reference(const SessionSpec& spec, std::size_t index) {
  return first_number_of(spec, spec.cells.size()) + static_cast<std::uint32_t>(index);
}

std::string name_of_number(const SessionSpec& spec, std::uint32_t number) {
  if (const Case* const one = case_numbered(spec, number); one != nullptr) return case_id(*one);
  const std::size_t index = number - number_of_reference(spec, 0);
  if (index < spec.references.size()) return "the start or the end of " + spec.references[index];
  return "the start of the job";
}

Result<Topology> topology_of(const SessionSpec& spec) {
  const Cell cell{.transport = spec.transport, .ranks_as = spec.ranks_as};
  return topology_of(topology_spec_of(cell, spec.conditions), spec.ranks, spec.transport_directories);
}

MemoryKind memory_kind_of(const SessionSpec& spec, const Topology& topology, std::string_view system) {
  const bool is_own = backend_of(system) == kOwnBackend;
  // All systems of one process have their buffers where the own one has them.
  if (is_own || topology.ranks_on == RanksOn::shared_device) {
    return topology.has_gpu_memory() ? MemoryKind::cuda : MemoryKind::host;
  }
  const bool is_there = std::ranges::find(spec.on_gpus, instance_of(system)) != spec.on_gpus.end();
  return is_there ? MemoryKind::cuda : MemoryKind::host;
}

bool has_gpu_memory(const SessionSpec& spec, const Topology& topology) {
  return topology.has_gpu_memory() || !spec.on_gpus.empty();
}

std::vector<Case> cases_in(MemoryKind memory, const SessionSpec& spec, const Topology& topology,
                           const std::vector<Case>& cell) {
  std::vector<Case> cases;
  std::ranges::copy_if(cell, std::back_inserter(cases),
                       [&](const Case& one) { return memory_kind_of(spec, topology, one.backend) == memory; });
  return cases;
}

MemoryLeft memory_for(const SessionSpec& spec, const Topology& topology, MemoryLeft now) {
  const auto references = static_cast<double>(spec.references.size());
  const double takes =
      spec.ranks * (kOfRank + references * kOfReference) + static_cast<double>(topology.shared_bytes(spec.heap_bytes));
  now.bytes = std::max<std::int64_t>(0, now.bytes - static_cast<std::int64_t>(takes));
  return now;
}

double most_for_limits(const SessionSpec& spec) {
  const auto* const task = spec.as<MeasureTask>();
  if (task == nullptr || !spec.conditions.measures_limit()) return 0;
  if (task->end_ns == 0) return std::numeric_limits<double>::max();
  constexpr double kClearedInNs = 1;  // bytes
  constexpr double kShare = 1.0 / 8;
  return kShare * kClearedInNs * static_cast<double>(std::max<std::int64_t>(0, task->end_ns - monotonic_ns()));
}

}  // namespace tutti::harness::session
