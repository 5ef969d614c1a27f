// SPDX-License-Identifier: Apache-2.0
#include "src/references.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "harness/backends/loader.h"
#include "harness/cases/case.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/text/streams.h"
#include "src/probe.h"
#include "src/program.h"
#include "tutti_backend_rows.h"
#include "tutti_torch_build.h"

namespace tutti::program {
namespace {

bool is_in(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool needs_gpu(std::string_view name) {
  return std::ranges::any_of(kTuttiBackendRows, [&](const auto& row) { return row.name == name && row.needs_gpu; });
}

/// Whether it can run here.
Status try_backend(const std::string& system, bool as_processes) {
  const std::string backend(harness::backend_of(system));
  return backend == harness::kOwnBackend ? Status() : path_of_backend(backend, as_processes).status();
}

}  // namespace

std::vector<std::string> backend_directories() { return harness::directories_named_by("TUTTI_BACKENDS"); }

std::vector<std::string> known_backends() {
  std::vector<std::string> names{std::string(harness::kOwnBackend)};
  const auto directories = backend_directories();
  for (std::string& name : harness::list_backends(directories)) names.push_back(std::move(name));
  return names;
}

const std::vector<std::string>& all_references() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& row : kTuttiBackendRows) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

bool is_built_in(std::string_view name) {
  return std::ranges::any_of(kTuttiBackendRows,
                             [&](const auto& row) { return row.name == name && *row.missing == '\0'; });
}

Result<std::string> path_of_backend(const std::string& name, bool as_processes) {
  const auto directories = backend_directories();
  TUTTI_ASSIGN_OR_RETURN(std::string path, harness::find_backend(name, directories));
  if (as_processes || needs_gpu(name)) TUTTI_RETURN_IF_ERROR(try_to_start(name).status());
  return path;  // with other ranks it is not loaded
}

std::map<std::string, Status> examine_backends(std::span<const std::string> names) {
  std::map<std::string, Status> found;
  std::vector<std::string> started;
  for (const std::string& name : names) {
    found[name] = path_of_backend(name, true).status();
    if (found[name].is_ok() && !needs_gpu(name)) started.push_back(name);
  }
  for (auto& [name, status] : try_ranks(started)) found[name] = std::move(status);
  return found;
}

Result<Starter> starter_of(std::string_view backend) {
  if (backend == harness::kOwnBackend) return Starter();
  TUTTI_ASSIGN_OR_RETURN(Starter starter, try_to_start(std::string(backend)));
  if (needs_gpu(backend)) starter.on_gpus.emplace_back(backend);
  return starter;
}

Status settle_backends(std::vector<std::string>& systems, bool as_processes, bool says_why) {
  const bool are_named = !systems.empty();
  if (!are_named) systems = known_backends();
  std::vector<std::string> usable;
  for (std::string& system : systems) {
    const Status status = try_backend(system, as_processes);
    if (are_named) TUTTI_RETURN_IF_ERROR(status);
    if (status.is_ok()) {
      usable.push_back(std::move(system));
    } else if (says_why && !is_for_other_machines(system)) {
      harness::to_stderr(fmt::format("# without {}: {}\n", system, status.message()));
    }
  }
  systems = std::move(usable);
  return {};
}

Result<std::vector<std::string>> parse_backends(std::string_view text, const std::vector<std::string>& known) {
  auto found = harness::parse_backends(text, known);
  if (found.is_ok()) return found;
  std::vector<std::string> possible = known;
  for (const std::string& name : all_references()) {
    if (!is_in(possible, name)) possible.push_back(name);
  }
  TUTTI_ASSIGN_OR_RETURN(const auto wanted, harness::parse_backends(text, possible));
  for (const std::string& name : wanted) {
    if (!is_in(known, name)) return missing_backend(name);
  }
  return found;
}

Status missing_backend(std::string_view name) {
  std::string why;
  for (const auto& row : kTuttiBackendRows) {
    if (row.name != name) continue;
    if (*row.missing != '\0') why = fmt::format(" (this build has none: {})", row.missing);
  }
  return error(Code::unavailable,
               "backend '{0}' is not there: no libtutti_backend_{0}.so in {1}{2}\n"
               "build it (CMake does where it finds the library), or name its folder in TUTTI_BACKENDS",
               name, fmt::join(backend_directories(), ", "), why);
}

std::string torch_text() {
  if (*kTuttiTorchMissing != '\0') return fmt::format("not built: {}", kTuttiTorchMissing);
  return fmt::format("built for torch {} of {}", kTuttiTorchVersion, kTuttiTorchPython);
}

}  // namespace tutti::program
