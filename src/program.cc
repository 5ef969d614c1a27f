// SPDX-License-Identifier: Apache-2.0
#include "src/program.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <unistd.h>

#include <fmt/ranges.h>

#include "harness/backends/loader.h"
#include "harness/cases/case.h"
#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/machine/allowed_cores.h"
#include "harness/text/streams.h"
#include "src/probe.h"

namespace tutti::program {
namespace {

std::string& stored_command_line() {
  static std::string line;
  return line;
}

bool is_in_path(const std::string& program) {
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable == nullptr ? "" : variable);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

int exit_code_of(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return exit_ok;
    case Code::invalid_argument:
      return exit_usage;
    case Code::unavailable:
    case Code::resource:
    case Code::io:
      return exit_environment;
    case Code::timeout:
    case Code::aborted:
      return exit_crash;
    case Code::mismatch:
    case Code::refuted:
      return exit_wrong;
  }
  return exit_crash;
}

int complain(const Status& status) {
  harness::to_stderr(fmt::format("tutti: {}\n", status.message()));
  return exit_code_of(status);
}

std::vector<std::string> backend_directories() {
  const char* variable = std::getenv("TUTTI_BACKENDS");
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  return harness::backend_directories(variable == nullptr ? "" : variable, program.parent_path().string());
}

std::vector<std::string> known_backends() {
  std::vector<std::string> names{std::string(harness::kOwnBackend)};
  const auto directories = backend_directories();
  for (std::string& name : harness::list_backends(directories)) names.push_back(std::move(name));
  return names;
}

Result<std::string> path_of_backend(const std::string& name, bool as_processes) {
  const auto directories = backend_directories();
  TUTTI_ASSIGN_OR_RETURN(std::string path, harness::find_backend(name, directories));
  if (!as_processes) return path;  // it is not loaded then
  if (!has_mpirun()) return error(Code::unavailable, "there is no mpirun in PATH");
  TUTTI_RETURN_IF_ERROR(try_to_start(name));
  return path;
}

bool has_mpirun() { return is_in_path("mpirun"); }

Status settle_backends(std::vector<std::string>& systems, bool as_processes, bool says_why) {
  if (systems.empty()) systems = usable_backends(as_processes, says_why);
  for (const std::string& system : systems) {
    const std::string backend(harness::backend_of(system));
    if (backend != harness::kOwnBackend) TUTTI_RETURN_IF_ERROR(path_of_backend(backend, as_processes).status());
  }
  return {};
}

std::vector<std::string> usable_backends(bool as_processes, bool says_why) {
  std::vector<std::string> names;
  for (std::string& name : known_backends()) {
    const Status status = name == harness::kOwnBackend ? Status() : path_of_backend(name, as_processes).status();
    if (!status.is_ok() && says_why) harness::to_stderr(fmt::format("# without {}: {}\n", name, status.message()));
    if (status.is_ok()) names.push_back(std::move(name));
  }
  return names;
}

const std::vector<std::string>& all_references() {
  static const std::vector<std::string> names{"openmpi"};
  return names;
}

bool is_planned(std::string_view name) {
  constexpr std::array<std::string_view, 3> kPlanned{"mpich", "nccl", "gloo"};
  return std::ranges::find(kPlanned, name) != kPlanned.end();
}

Result<std::vector<std::string>> parse_backends(std::string_view text, const std::vector<std::string>& known) {
  auto found = harness::parse_backends(text, known);
  if (found.is_ok()) return found;
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string_view name : harness::split(text, ',')) {
    if (is_planned(name) && !is_in(known, std::string(name))) return missing_backend(name);
  }
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
  if (is_planned(name)) {
    return error(Code::unavailable, "backend '{}' is not part of this build yet: there are {} and {}", name,
                 harness::kOwnBackend, fmt::join(all_references(), ", "));
  }
  return error(Code::unavailable,
               "backend '{0}' is not there: no libtutti_backend_{0}.so in {1}\n"
               "build it (CMake does where it finds the library), or name its folder in TUTTI_BACKENDS",
               name, fmt::join(backend_directories(), ", "));
}

int default_ranks() {
  constexpr int kMost = 8;
  return std::clamp(static_cast<int>(harness::allowed_cores().size()), 1, kMost);
}

const std::string& command_line() { return stored_command_line(); }

std::string shell_word(std::string_view word) {
  const bool is_plain = word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]{}~#!") == std::string_view::npos && !word.empty();
  if (is_plain) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void set_command_line(int argc, char** argv) {
  std::string& line = stored_command_line();
  for (int i = 0; i < argc; ++i) {
    if (i > 0) line += ' ';
    line += shell_word(argv[i]);
  }
}

}  // namespace tutti::program
