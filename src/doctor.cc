// SPDX-License-Identifier: Apache-2.0
// `tutti doctor`: what this machine is, and what would spoil a measurement on it.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "harness/backends/loader.h"
#include "harness/doctor/diagnosis.h"
#include "src/probe.h"
#include "src/program.h"
#include "src/references.h"

namespace tutti::program {
namespace {

std::vector<std::string> programs_path() {
  const char* variable = std::getenv("PATH");
  std::istringstream text(variable == nullptr ? "" : variable);
  std::vector<std::string> folders;
  for (std::string folder; std::getline(text, folder, ':');) folders.push_back(folder);
  return folders;
}

int doctor(bool as_json) {
  harness::Probes probes = harness::probe_system();
  probes.programs_path = programs_path();
  for (std::string& name : harness::list_backends(backend_directories())) {
    const Status usable = path_of_backend(name, true).status();
    if (usable.is_ok()) {
      probes.backends.push_back(std::move(name));
    } else if (!is_for_other_machines(name)) {
      probes.unusable.push_back({.name = std::move(name), .why = usable.message()});
    }
  }
  const harness::MachineCondition condition = harness::read_condition(harness::Tree("/"), std::move(probes));
  const std::vector<harness::Symptom> findings = harness::findings_of(condition);
  fmt::print("{}", as_json ? diagnosis_json(condition, findings) : diagnosis_text(condition, findings));
  const bool is_blocked = std::ranges::any_of(
      findings, [](const harness::Symptom& finding) { return finding.severity == harness::Severity::blocks; });
  return is_blocked ? exit_environment : exit_ok;
}

}  // namespace

void add_doctor(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("doctor", "what this machine is, and what would spoil a measurement");
  command->footer("Example: tutti doctor --json");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "machine-readable");
  command->callback([&action, as_json] { action = [as_json] { return doctor(*as_json); }; });
}

}  // namespace tutti::program
