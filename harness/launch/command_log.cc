// SPDX-License-Identifier: Apache-2.0
// The last words of start commands, quoted above the lines that look for them: of Open MPI's mpirun, and of Hydra,
// which is the mpirun of MPICH and what is made of it.
#include <cstdio>

#include "harness/launch/children.h"

namespace tutti::harness::launch {
namespace {

// "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)."
std::optional<CommandVerdict> parse_signal(const std::string& log) {
  const std::size_t start = log.rfind("noticed that process rank ");
  if (start == std::string::npos) return std::nullopt;
  const std::size_t signal = log.find("exited on signal ", start);
  CommandVerdict verdict;
  verdict.how = Ending::killed;
  if (signal == std::string::npos ||
      std::sscanf(log.c_str() + start, "noticed that process rank %d", &verdict.rank) != 1 ||
      std::sscanf(log.c_str() + signal, "exited on signal %d", &verdict.number) != 1) {
    return std::nullopt;
  }
  return verdict;
}

// "  Process name: [[10250,1],1]
//    Exit code:    3"
std::optional<CommandVerdict> parse_exit_code(const std::string& log) {
  const std::size_t start = log.rfind("Process name: [[");
  if (start == std::string::npos) return std::nullopt;
  CommandVerdict verdict;
  if (std::sscanf(log.c_str() + start, "Process name: [[%*d,%*d],%d] Exit code: %d", &verdict.rank, &verdict.number) !=
      2) {
    return std::nullopt;
  }
  return verdict;
}

// "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
//  =   PID 4734 RUNNING AT host
//  =   EXIT CODE: 9
//  ...
//  YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
// Intel's:
// "=   RANK 1 PID 4734 RUNNING AT host
//  =   KILLED BY SIGNAL: 9 (Killed)"
// The first of several is that of the rank which ended first.
std::optional<CommandVerdict> parse_termination(const std::string& all) {
  constexpr std::string_view kBegin = "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES";
  const std::size_t start = all.find(kBegin);
  if (start == std::string::npos) return std::nullopt;
  const std::size_t next = all.find(kBegin, start + kBegin.size());
  const std::string log = all.substr(start, next == std::string::npos ? next : next - start);
  const auto number_after = [&](const char* words, int& number) {
    const std::size_t at = log.find(words);
    return at != std::string::npos &&
           std::sscanf(log.c_str() + at + std::string_view(words).size(), "%d", &number) == 1;
  };
  CommandVerdict verdict;
  if (!number_after("PID ", verdict.pid)) return std::nullopt;
  number_after("=   RANK ", verdict.rank);
  if (number_after("(signal ", verdict.number) || number_after("KILLED BY SIGNAL: ", verdict.number)) {
    verdict.how = Ending::killed;
    return verdict;
  }
  if (!number_after("EXIT CODE: ", verdict.number) && !number_after("EXIT STATUS: ", verdict.number)) {
    return std::nullopt;
  }
  return verdict;
}

}  // namespace

std::optional<CommandVerdict> parse_command_verdict(const std::string& log) {
  for (const auto parse : {parse_signal, parse_exit_code, parse_termination}) {
    if (const auto verdict = parse(log)) return verdict;
  }
  return std::nullopt;
}

// "[host:32467] [[4653,0],0] odls:wait_local_proc child process [[4653,1],1] pid 32473 terminated"
std::vector<int> parse_command_ends(const std::string& log) {
  static const std::string words = "odls:wait_local_proc child process [[";
  std::vector<int> ranks;
  for (std::size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) {
    int rank = -1;
    if (std::sscanf(log.c_str() + at + words.size(), "%*d,%*d],%d]", &rank) == 1) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace tutti::harness::launch
