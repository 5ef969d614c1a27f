// SPDX-License-Identifier: Apache-2.0
#include "src/failed_start.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "impl/types/names.h"

namespace tutti::program {
namespace {

using harness::Ending;

/// Signals by which a process ends for a fault of its own, or by a filter of system calls.
constexpr int kOwnSignals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGSYS, SIGTRAP, SIGXFSZ, SIGXCPU};

/// After them MPICH ends its rank, and its mpirun the other ranks by SIGTERM.
constexpr std::string_view kLastWordsOfMpich = "Fatal error in";

bool is_of_the_processes_own(const harness::Outcome& outcome) {
  switch (outcome.how) {
    case Ending::exited:
    case Ending::hung:
    case Ending::said_error:
    case Ending::never_connected:
      return true;
    case Ending::killed:
      if (outcome.number == SIGTERM) return outcome.log_tail.find(kLastWordsOfMpich) != std::string::npos;
      return std::ranges::find(kOwnSignals, outcome.number) != std::end(kOwnSignals);
    case Ending::finished:
    case Ending::stopped:
    case Ending::garbled:
    case Ending::lost_host:
    case Ending::interrupted:
      return false;
  }
  return false;
}

}  // namespace

std::vector<std::string> not_started(const harness::SessionSpec& spec, const Starter& starter,
                                     const harness::Outcome& outcome) {
  if (!is_of_the_processes_own(outcome)) return {};
  if (!outcome.all_came) return starter.command ? spec.references : std::vector<std::string>();
  for (std::size_t i = 0; i < spec.references.size(); ++i) {
    if (outcome.case_index == harness::number_of_reference(spec, i)) return {spec.references[i]};
  }
  return {};
}

std::string why_not_started(const harness::Outcome& outcome) {
  const std::string& message = outcome.failure.message();
  std::string why = message.substr(0, message.find('\n'));
  if (outcome.how == Ending::said_error) return why;  // the rank has said it all
  return outcome.log_line.empty() ? why : fmt::format("{}: {}", why, shown(outcome.log_line));
}

}  // namespace tutti::program
