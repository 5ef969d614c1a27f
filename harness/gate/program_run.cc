// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/program_run.h"

#include <filesystem>
#include <unistd.h>

#include <fmt/ranges.h>

#include "harness/record/csv_reader.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::gate {
namespace {

std::string path_of(const Descriptor& file) { return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get()); }

}  // namespace

Result<ProgramRun> run_program(std::vector<std::string> command, std::chrono::milliseconds limit,
                               const Interrupts& interrupts) {
  TUTTI_ASSIGN_OR_RETURN(const Descriptor csv, memory_file("tutti-gate-rows"));
  command.insert(command.end(), {"--csv", path_of(csv)});
  auto ended = run_command(command, limit, interrupts);
  ProgramRun run;
  if (ended.is_ok()) {
    static_cast<CommandRun&>(run) = std::move(ended).value();
  } else if (ended.status().code() == Code::timeout) {
    run.late = fmt::format("did not end within {} s and was ended", limit.count() / 1000);
  } else {
    return ended.status();
  }
  if (auto rows = read_csv(path_of(csv)); rows.is_ok()) run.rows = std::move(rows).value();
  return run;
}

Result<std::string> program_of_build(const std::string& folder) {
  std::vector<std::string> places;
  for (const char* place : {"bin/tutti", "tutti", "build/bin/tutti"}) {
    places.push_back((std::filesystem::path(folder) / place).string());
    std::error_code failure;
    const bool is_file = std::filesystem::is_regular_file(places.back(), failure);
    if (is_file && ::access(places.back().c_str(), X_OK) == 0) return std::filesystem::absolute(places.back()).string();
  }
  return error(Code::invalid_argument, "'{}' is no build of tutti: there is no program {}", folder,
               fmt::join(places, ", "));
}

}  // namespace tutti::harness::gate
