// SPDX-License-Identifier: Apache-2.0
#include "src/references.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "harness/backends/loader.h"
#include "harness/cases/case.h"
#include "harness/cases/lists.h"
#include "harness/cases/settings.h"
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

/// Names of the settings of a rank, for its library to look them up (backend.h).
constexpr const char* kSettings = "TUTTI_SETTINGS";

/// Errors: invalid_argument for settings that the backend has not.
Status check_settings(const std::string& backend, const std::vector<harness::Setting>& settings) {
  if (settings.empty()) return {};
  const SettingForm form = backend == harness::kOwnBackend ? SettingForm() : setting_form_of(backend);
  if (form.prefix.empty()) {
    return error(Code::invalid_argument, "backend '{0}' has no settings, such as '{1}': did you mean '{0}'?", backend,
                 settings.front().name);
  }
  for (const harness::Setting& one : settings) {
    if (!one.name.starts_with(form.prefix)) continue;
    return error(Code::invalid_argument, "setting '{}' of {}: its name is written without '{}': did you mean '{}'?",
                 one.name, backend, form.prefix, one.name.substr(form.prefix.size()));
  }
  return {};
}

/// What the start command itself sets by a flag, which would be stronger than the environment.
void set_in_words(harness::StartCommand& command, const std::string& flag, const harness::Setting& setting) {
  if (flag.empty()) return;
  for (std::vector<std::string>* const words : {&command.words, &command.across}) {
    for (std::size_t i = 0; i + 2 < words->size(); ++i) {
      if ((*words)[i] == flag && (*words)[i + 1] == setting.name) (*words)[i + 2] = setting.value;
    }
  }
}

/// Whether it can run here.
Status try_backend(const std::string& system, bool as_processes) {
  const std::string backend(harness::backend_of(system));
  if (backend != harness::kOwnBackend) TUTTI_RETURN_IF_ERROR(path_of_backend(backend, as_processes).status());
  return check_settings(backend, harness::settings_of(system));
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

Result<Starter> starter_of(std::string_view system) {
  const std::string backend(harness::backend_of(system)), instance(harness::instance_of(system));
  Starter starter;
  if (backend != harness::kOwnBackend) {
    TUTTI_ASSIGN_OR_RETURN(starter, try_to_start(backend));
    if (needs_gpu(backend)) starter.on_gpus.push_back(instance);
  }
  const std::vector<harness::Setting> settings = harness::settings_of(instance);
  if (settings.empty()) return starter;
  TUTTI_RETURN_IF_ERROR(check_settings(backend, settings));
  const SettingForm form = setting_form_of(backend);
  starter.name = instance;
  std::vector<std::string> names;
  for (const harness::Setting& one : settings) {
    if (starter.command) set_in_words(*starter.command, form.flag, one);
    std::vector<std::string>& environment = starter.command ? starter.command->environment : starter.environment;
    environment.push_back(fmt::format("{}{}={}", form.prefix, one.name, one.value));
    names.push_back(form.lookup == "whole" ? form.prefix + one.name : one.name);
  }
  if (starter.command && !form.lookup.empty())
    starter.command->environment.push_back(fmt::format("{}={}", kSettings, fmt::join(names, ",")));
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
  for (const std::string& system : wanted) {
    const std::string name(harness::backend_of(system));
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
