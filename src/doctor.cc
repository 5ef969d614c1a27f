// SPDX-License-Identifier: Apache-2.0
// `tutti doctor`: what this machine is, and what would spoil a measurement on it.
#include "src/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "harness/backends/loader.h"
#include "harness/doctor/diagnosis.h"
#include "harness/doctor/hosts_diagnosis.h"
#include "harness/machine/allowed_cores.h"
#include "harness/process/spawn.h"
#include "harness/process/starter.h"
#include "harness/text/streams.h"
#include "impl/tcp/interface.h"
#include "impl/types/host_list.h"
#include "src/options.h"
#include "src/probe.h"
#include "src/program.h"
#include "src/references.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

constexpr const char* kAnswer = "--answer";

std::vector<std::string> programs_path() {
  const char* variable = std::getenv("PATH");
  std::istringstream text(variable == nullptr ? "" : variable);
  std::vector<std::string> folders;
  for (std::string folder; std::getline(text, folder, ':');) folders.push_back(folder);
  return folders;
}

harness::MachineCondition condition_here() {
  harness::Probes probes = harness::probe_system();
  probes.programs_path = programs_path();
  probes.torch = torch_text();
  for (const auto& [name, usable] : examine_backends(harness::list_backends(backend_directories()))) {
    if (usable.is_ok()) {
      probes.backends.push_back(name);
    } else if (!is_for_other_machines(name)) {
      probes.unusable.push_back({.name = name, .why = usable.message()});
    }
  }
  harness::MachineCondition condition = harness::read_condition(harness::Tree("/"), std::move(probes));
  // Without /proc and /sys the kernel still says where this process may run, as it does to `tutti run`.
  if (condition.allowed.empty()) condition.allowed = condition.online = harness::allowed_cores();
  return condition;
}

int code_of(const std::vector<harness::Symptom>& findings) {
  const bool is_blocked = std::ranges::any_of(
      findings, [](const harness::Symptom& finding) { return finding.severity == harness::Severity::blocks; });
  return is_blocked ? exit_environment : exit_ok;
}

int doctor(bool as_json) {
  const harness::MachineCondition condition = condition_here();
  const std::vector<harness::Symptom> findings = harness::findings_of(condition);
  harness::print("{}", as_json ? diagnosis_json(condition, findings) : diagnosis_text(condition, findings));
  return code_of(findings);
}

/// What this host says where it is one of several.
Result<harness::HostLook> look_here() {
  const harness::MachineCondition condition = condition_here();
  std::vector<harness::Fact> libraries;
  for (const std::string& name : condition.probes.backends) {
    libraries.push_back({fmt::format("reference {}", name), library_of(name)});
  }
  std::vector<harness::Symptom> findings = harness::findings_of(condition);
  return harness::HostLook{.hostname = tcp::hostname(),
                           .build = build_text(),
                           .machine = harness::running_kernel(),
                           .address = {},
                           .listens = {},
                           .facts = facts_of(condition, build_text(), libraries),
                           .condition = diagnosis_json(condition, findings),
                           .findings = std::move(findings)};
}

int answer() {
  harness::leave_job();  // a process of mpirun may have started this one: what this one tries is no rank of that job
  const Status status = harness::answer_as_host(look_here);
  return status.is_ok() ? exit_ok : complain(status);
}

int doctor_of_hosts(const Settings& settings, bool as_json) {
  const auto visits = visit_hosts_of(settings);
  if (!visits.is_ok()) return complain(visits.status());
  const std::vector<harness::Symptom> findings = harness::findings_of(visits.value());
  harness::print("{}", as_json ? diagnosis_json(visits.value(), findings) : diagnosis_text(visits.value(), findings));
  return code_of(findings);
}

int choose_doctor(const SweepOptions& options, bool as_json) {
  const auto settings = options.settings({});
  if (!settings.is_ok()) return complain(settings.status());
  if (!settings.value().conditions.topology.hosts.empty()) return doctor_of_hosts(settings.value(), as_json);
  if (settings.value().reach.interface.empty()) return doctor(as_json);
  return complain(error(Code::invalid_argument, "--interface: has no meaning without --hosts; leave --interface out"));
}

}  // namespace

std::vector<std::string> examiner_command() { return {harness::resolve_program("/proc/self/exe"), "doctor", kAnswer}; }

Result<std::vector<harness::Visit>> visit_hosts_of(const Settings& places) {
  harness::VisitRequest request{
      .hosts = {}, .agent = places.reach.agent, .interface = places.reach.interface, .program = examiner_command()};
  for (const NamedHost& host : places.conditions.topology.hosts) request.hosts.push_back(host.name);
  return harness::visit_hosts(request);
}

void add_doctor(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("doctor", "what this machine is, and what would spoil a measurement");
  command->footer(
      "Example: tutti doctor --json\n"
      "Example: tutti doctor --hosts node1,node2\n"
      "With --hosts it looks at each of them, and names what differs; it ends with 3 where a job on them cannot run.");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "machine-readable");
  auto answers = std::make_shared<bool>(false);
  command->add_flag(kAnswer, *answers, "for `tutti doctor --hosts`, in lines")->group("");
  std::vector<OptionChoice> choices = choices_of_hosts();
  choices.front().help = "examines these machines, which --agent reaches, and compares them (default: this machine)";
  auto options = std::make_shared<SweepOptions>(*command, choices, std::span<const Collective>());
  command->callback([&action, options, as_json, answers] {
    action = [options, as_json, answers] { return *answers ? answer() : choose_doctor(*options, *as_json); };
  });
}

}  // namespace tutti::program
