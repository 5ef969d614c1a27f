// SPDX-License-Identifier: Apache-2.0
// The specification of a session as text, and the memory that follows from it.
#include "harness/session/spec.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/cases/sweep.h"
#include "harness/machine/clock.h"
#include "harness/text/json_reader.h"
#include "impl/transports/local/domain.h"

namespace tutti::harness::session {
namespace {

constexpr std::array<std::string_view, 4> kModes{"measure", "check", "soak", "faults"};  // [Mode]

// What a rank takes before its first cell: 11 MiB were seen of four ranks, 40 MiB with Open MPI.
constexpr double kOfRank = 4 * (1 << 20);
constexpr double kOfReference = 12 * (1 << 20);

/// JSON has characters and a path has bytes, which need be none: each becomes the character of its number, and back.
std::string characters_of(std::string_view bytes) {
  std::string text;
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    if (byte >= 0x80U) text += static_cast<char>(0xC0U | byte >> 6U);
    text += byte < 0x80U ? one : static_cast<char>(0x80U | (byte & 0x3FU));
  }
  return text;
}
std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const bool is_pair = (first == 0xC2U || first == 0xC3U) && i + 1 < text.size();
    bytes +=
        is_pair ? static_cast<char>((first & 3U) << 6U | (static_cast<unsigned char>(text[++i]) & 0x3FU)) : text[i];
  }
  return bytes;
}

}  // namespace

std::string to_json(const SessionSpec& spec) {
  std::vector<std::string> directories = spec.backend_directories;
  std::ranges::transform(directories, directories.begin(), characters_of);
  nlohmann::json cells = nlohmann::json::array();
  for (const std::vector<Case>& cell : spec.cells) {
    nlohmann::json ids = nlohmann::json::array();
    for (const Case& one : cell) ids.push_back(case_id(one));
    cells.push_back(std::move(ids));
  }
  nlohmann::json files = nlohmann::json::object();
  for (const std::vector<Case>& cell : spec.cells) {
    for (const Case& one : cell) {
      if (one.counts.pattern == Pattern::file) files[one.counts.name] = one.counts.numbers;
    }
  }
  return nlohmann::json{
      {"mode", kModes[static_cast<std::size_t>(spec.mode)]},
      {"ranks", spec.ranks},
      {"ranks_as", to_string(spec.ranks_as)},
      {"cells", std::move(cells)},
      {"counts", std::move(files)},
      {"references", spec.references},
      {"twins", spec.twins},
      {"backend_directories", directories},
      {"seed", spec.seed},
      {"timeout_ns", spec.timeout.count()},
      {"end_ns", spec.end_ns},
      {"cells_after", spec.cells_after},
      {"heap_bytes", spec.heap_bytes},
      {"bind", spec.bind ? to_string(*spec.bind) : ""},
      {"operations", spec.operations},
      {"launch", spec.launch},
      {"tells_samples", spec.tells_samples},
      {"iterations", spec.iterations},
      {"tells_ranks", spec.tells_ranks},
      {"checking", to_string(spec.checking)},
      {"values", to_string(spec.values)},
      {"cache", to_string(spec.cache)},
      {"sync", to_string(spec.sync)},
      {"overlap_calls", spec.overlap_calls},
      {"skew_ns", spec.skew.count()},
      {"has_limit", spec.has_limit},
      {"order_seed", spec.order_seed ? nlohmann::json(*spec.order_seed) : nlohmann::json()},
      {"slow_down_share", spec.slow_down ? spec.slow_down->share : 0},
      {"slow_down_bytes", spec.slow_down ? spec.slow_down->bytes.value_or(-1) : -1},
      {"faults", spec.faults},
      {"blind", spec.blind},
  }
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

/// The library makes integers of fractions, whatever their size.
Status check_whole_numbers(const nlohmann::json& json) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number_float() || key == "slow_down_share") continue;
    return error(Code::invalid_argument, "the job's specification: '{}' is no whole number", shown(key));
  }
  return {};
}

Result<SessionSpec> session_of(const nlohmann::json& json) {
  TUTTI_RETURN_IF_ERROR(check_whole_numbers(json));
  SessionSpec spec;
  TUTTI_ASSIGN_OR_RETURN(spec.ranks_as, parse_ranks_as(json.value("ranks_as", "")));
  const auto mode = std::ranges::find(kModes, json.value("mode", ""));
  if (mode != kModes.end()) spec.mode = static_cast<SessionSpec::Mode>(mode - kModes.begin());
  spec.ranks = json.value("ranks", 1);
  spec.references = json.value("references", std::vector<std::string>());
  spec.twins = json.value("twins", std::vector<std::string>());
  spec.backend_directories = json.value("backend_directories", std::vector<std::string>());
  std::ranges::transform(spec.backend_directories, spec.backend_directories.begin(), bytes_of);
  spec.seed = json.value("seed", std::uint64_t{1});
  spec.timeout = std::chrono::nanoseconds(json.value("timeout_ns", std::int64_t{0}));
  spec.end_ns = json.value("end_ns", std::int64_t{0});
  spec.cells_after = json.value("cells_after", 0);
  spec.heap_bytes = json.value("heap_bytes", std::size_t{0});
  if (const std::string bind = json.value("bind", ""); !bind.empty()) {
    TUTTI_ASSIGN_OR_RETURN(spec.bind, parse_bind(bind));
  }
  spec.operations = json.value("operations", std::int64_t{0});
  spec.launch = json.value("launch", 1);
  spec.tells_samples = json.value("tells_samples", false);
  spec.iterations = json.value("iterations", std::int64_t{0});
  spec.tells_ranks = json.value("tells_ranks", false);
  TUTTI_ASSIGN_OR_RETURN(spec.checking, parse_checking(json.value("checking", "sample")));
  TUTTI_ASSIGN_OR_RETURN(spec.values, parse_values(json.value("values", "exact")));
  TUTTI_ASSIGN_OR_RETURN(spec.cache, parse_cache_state(json.value("cache", "hot")));
  TUTTI_ASSIGN_OR_RETURN(spec.sync, parse_synchronisation(json.value("sync", "roundtime")));
  spec.overlap_calls = json.value("overlap_calls", 0);
  spec.skew = std::chrono::nanoseconds(json.value("skew_ns", std::int64_t{0}));
  spec.has_limit = json.value("has_limit", false);
  if (const auto seed = json.find("order_seed"); seed != json.end() && seed->is_number_unsigned()) {
    spec.order_seed = seed->get<std::uint64_t>();
  }
  if (const double share = json.value("slow_down_share", 0.0); share > 0) {
    const std::int64_t bytes = json.value("slow_down_bytes", std::int64_t{-1});
    spec.slow_down = {.share = share, .bytes = bytes < 0 ? std::nullopt : std::optional(bytes)};
  }
  spec.faults = json.value("faults", "");
  spec.blind = json.value("blind", "");
  std::vector<Counts> files;
  const nlohmann::json counts = json.value("counts", nlohmann::json::object());
  for (const auto& [name, numbers] : counts.items()) {
    TUTTI_RETURN_IF_ERROR(check_whole_numbers(numbers));
    files.push_back({.pattern = Pattern::file, .name = name, .numbers = numbers.get<std::vector<Count>>()});
    const auto is_none = [](Count count) { return count < 0 || count > kMostCount; };
    if (std::ranges::any_of(files.back().numbers, is_none)) {
      return error(Code::invalid_argument, "the job's specification: counts '{}' are none", shown(name));
    }
  }
  for (const nlohmann::json& ids : json.value("cells", nlohmann::json::array())) {
    std::vector<Case>& cell = spec.cells.emplace_back();
    for (const nlohmann::json& id : ids) {
      TUTTI_ASSIGN_OR_RETURN(Case one, parse_case_id(id.get<std::string>()));
      TUTTI_RETURN_IF_ERROR(complete_counts(one, files));
      cell.push_back(std::move(one));
    }
  }
  return spec;
}

}  // namespace

Result<SessionSpec> session_from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "the job's specification", text, session_of);
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

DomainShape domain_shape(const SessionSpec& spec) {
  if (spec.ranks_as != RanksAs::processes) return local::shape_for(spec.ranks);
  return default_shape(spec.ranks, spec.heap_bytes);
}

MemoryLeft memory_for(const SessionSpec& spec, MemoryLeft now) {
  const auto references = static_cast<double>(spec.references.size());
  const bool has_processes = spec.ranks_as == RanksAs::processes;
  double takes = spec.ranks * (kOfRank + references * kOfReference);
  if (has_processes) takes += static_cast<double>(domain_bytes(domain_shape(spec)));
  now.bytes = std::max<std::int64_t>(0, now.bytes - static_cast<std::int64_t>(takes));
  return now;
}

double most_for_limits(const SessionSpec& spec) {
  if (!spec.has_limit) return 0;
  if (spec.end_ns == 0) return std::numeric_limits<double>::max();
  constexpr double kClearedInNs = 1;  // bytes
  constexpr double kShare = 1.0 / 8;
  return kShare * kClearedInNs * static_cast<double>(std::max<std::int64_t>(0, spec.end_ns - monotonic_ns()));
}

}  // namespace tutti::harness::session
