// SPDX-License-Identifier: Apache-2.0
// `tutti list`: what there is, and why something is not available.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/cases/conditions.h"
#include "harness/cases/lists.h"
#include "harness/cases/suite.h"
#include "harness/faults/fault.h"
#include "harness/gate/counters.h"
#include "harness/text/json_writer.h"
#include "harness/text/streams.h"
#include "impl/algorithms/algorithm.h"
#include "impl/collective/aliases.h"
#include "impl/types/aliases.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "src/program.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using nlohmann::json;

json backends() {
  json list = json::array();
  list.push_back({{"name", "tutti"}, {"available", true}, {"note", "the own collectives"}});
  const std::vector<std::string> names = harness::list_backends(backend_directories());
  const auto directories = backend_directories();
  for (const auto& [name, status] : examine_backends(names)) {
    const auto path = harness::find_backend(name, directories);
    const Status usable = status.is_ok() ? path.status() : status;
    list.push_back(
        {{"name", name}, {"available", usable.is_ok()}, {"note", usable.is_ok() ? path.value() : usable.message()}});
  }
  for (const std::string& name : all_references()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string why = missing_backend(name).message();  // and on further lines what to do
    list.push_back({{"name", name}, {"available", false}, {"note", why.substr(0, why.find('\n'))}});
  }
  return list;
}

json faults() {
  json list = json::array();
  for (const harness::Fault fault : harness::all_faults()) {
    list.push_back({{"name", to_string(fault)}, {"summary", summary_of(fault)}});
  }
  return list;
}

template <class List>
json names_of(const List& list) {
  json names = json::array();
  for (const auto& item : list) names.push_back(to_string(item));
  return names;
}

/// By name, what else may be typed for it.
template <class List>
void add_aliases(const List& list, json& aliases) {
  for (const auto& item : list) {
    if (aliases_of(item).empty()) continue;
    for (const std::string_view alias : harness::split(aliases_of(item), ' ')) {
      aliases[std::string(to_string(item))].push_back(alias);
    }
  }
}

json all_aliases() {
  json aliases = json::object();
  add_aliases(every_collective(), aliases);
  add_aliases(known_dtypes(), aliases);
  add_aliases(all_ops(), aliases);
  return aliases;
}

json everything() {
  json algorithms = json::array();
  for (const Algorithm* algorithm : all_algorithms()) {
    algorithms.push_back({{"collective", to_string(algorithm->collective)},
                          {"name", algorithm->name},
                          {"takes_counts", algorithm->takes_counts},
                          {"summary", algorithm->summary},
                          {"source", algorithm->source}});
  }
  return {{"collectives", names_of(every_collective())},
          {"algorithms", std::move(algorithms)},
          {"transports", list_of_transports()},
          {"backends", backends()},
          {"torch", torch_text()},
          {"dtypes", names_of(known_dtypes())},
          {"dtypes_beside_all", names_of(std::span(known_dtypes()).subspan(all_dtypes().size()))},
          {"ops", names_of(all_ops())},
          {"faults", faults()},
          {"aliases", all_aliases()}};
}

void print_names(const char* title, const json& names) {
  harness::print("{}:", title);
  for (const json& name : names) harness::print(" {}", name.get<std::string>());
  harness::print("\n");
}

int list(bool as_json) {
  const json all = everything();
  if (as_json) {
    harness::print("{}\n", harness::json_text(all, 2));
    return exit_ok;
  }
  print_names("collectives", all["collectives"]);
  for (const Collective form : every_collective()) {
    if (!has_counts(form)) continue;
    std::string names;
    for (const Algorithm* algorithm : algorithms_of(form)) names += fmt::format(" {}", algorithm->name);
    harness::print("  {:<16} on the algorithms of {} that take counts:{}\n", to_string(form), to_string(base_of(form)),
                   names);
  }
  print_names("dtypes", all["dtypes"]);
  harness::print("  `all` leaves out:");
  for (const json& name : all["dtypes_beside_all"]) harness::print(" {}", name.get<std::string>());
  harness::print("\n");
  print_names("ops", all["ops"]);
  harness::print("also read as (and all names in any case, without '_' and after 'MPI_'):\n");
  for (const auto& [name, aliases] : all["aliases"].items()) {
    harness::print("  {:<16}", name);
    for (const json& alias : aliases) harness::print(" {}", alias.get<std::string>());
    harness::print("\n");
  }
  harness::print("algorithms:\n");
  for (const json& algorithm : all["algorithms"]) {
    harness::print("  {:<14} {:<18} {}\n", algorithm["collective"].get<std::string>(),
                   algorithm["name"].get<std::string>(), algorithm["summary"].get<std::string>());
  }
  const auto print_available = [](const json& one) {
    harness::print("  {:<11} {}{}\n", one["name"].get<std::string>(),
                   one["available"].get<bool>() ? "" : "not available: ", one["note"].get<std::string>());
  };
  harness::print("transports:\n");
  for (const json& transport : all["transports"]) print_available(transport);
  harness::print("backends:\n");
  for (const json& backend : all["backends"]) print_available(backend);
  harness::print("process group of PyTorch: {}\n", all["torch"].get<std::string>());
  harness::print("faults of `tutti check --faults`:\n");
  for (const json& fault : all["faults"]) {
    harness::print("  {:<20} {}\n", fault["name"].get<std::string>(), fault["summary"].get<std::string>());
  }
  return exit_ok;
}

/// What `auto` chooses for each of these cells, and what that costs: of one build for another. A cell that cannot be
/// counted costs no other one its counters; the code is that of the first of them.
int costs(const std::string& cells, const std::string& hosts) {
  harness::Conditions conditions;
  if (!hosts.empty()) {
    Status status = harness::condition_of_option("--hosts")->read(conditions, hosts);
    if (status.is_ok() && cells.empty()) {
      status = error(Code::invalid_argument, "has no meaning without --costs; leave --hosts out");
    }
    if (!status.is_ok()) return complain(error(status.code(), "--hosts: {}", status.message()));
  }
  harness::CountersByCell all;
  harness::ReasonsByCell not_counted;
  const auto count = [&](std::string_view id) -> Status {
    TUTTI_ASSIGN_OR_RETURN(const harness::Case one, harness::case_of_cell_id(id));
    TUTTI_ASSIGN_OR_RETURN(const harness::Topology topology, topology_of_cell(one, conditions));
    TUTTI_ASSIGN_OR_RETURN(harness::Counters counters, harness::counters_of(one, topology));
    if (const Status status = count_footprint(counters, one, topology); !status.is_ok()) {
      not_counted[std::string(id)] = status.message();
    }
    all[std::string(id)] = std::move(counters);
    return {};
  };
  int code = exit_ok;
  for (const std::string_view id : harness::split(cells, ',')) {
    const Status status = count(id);
    if (status.is_ok()) continue;
    not_counted[std::string(id)] = status.message();
    const int failed = complain(status);
    if (code == exit_ok) code = failed;
  }
  harness::print("{}\n", to_json(all, not_counted));
  return code;
}

}  // namespace

void add_list(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("list", "collectives, algorithms, transports, backends, dtypes, ops");
  command->footer(
      "Example: tutti list --json\n"
      "Backends are looked for in the folders that TUTTI_BACKENDS names, with colons between, then beside the "
      "program;\n"
      "`scripts/build-backend` makes one of another MPI. Transports that are shared objects are looked for likewise:\n"
      "in TUTTI_TRANSPORTS, then beside the program.");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "machine-readable");
  auto cells = std::make_shared<std::string>();
  command
      ->add_option("--costs", *cells,
                   "of cells, by id: algorithm, messages, bytes, rounds, and allocations and system calls in 16 "
                   "operations, in JSON; and why a cell is not counted")
      ->type_name("CELL,...");
  auto hosts = std::make_shared<std::string>();
  command->add_option("--hosts", *hosts, "with --costs: the hosts that the ranks are on, as in `tutti run`")
      ->type_name("LIST");
  command->callback([&action, as_json, cells, hosts] {
    action = [as_json, cells, hosts] {
      return cells->empty() && hosts->empty() ? list(*as_json) : costs(*cells, *hosts);
    };
  });
}

}  // namespace tutti::program
