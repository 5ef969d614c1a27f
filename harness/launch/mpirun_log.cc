// SPDX-License-Identifier: Apache-2.0
// The words of Open MPI's mpirun, quoted above the lines that look for them.
#include <cstdio>

#include "harness/launch/children.h"

namespace tutti::harness::launch {
namespace {

// "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)."
std::optional<MpirunVerdict> parse_signal(const std::string& log) {
  const std::size_t start = log.rfind("noticed that process rank ");
  if (start == std::string::npos) return std::nullopt;
  const std::size_t signal = log.find("exited on signal ", start);
  MpirunVerdict verdict;
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
std::optional<MpirunVerdict> parse_exit_code(const std::string& log) {
  const std::size_t start = log.rfind("Process name: [[");
  if (start == std::string::npos) return std::nullopt;
  MpirunVerdict verdict;
  if (std::sscanf(log.c_str() + start, "Process name: [[%*d,%*d],%d] Exit code: %d", &verdict.rank, &verdict.number) !=
      2) {
    return std::nullopt;
  }
  return verdict;
}

}  // namespace

std::optional<MpirunVerdict> parse_mpirun_verdict(const std::string& log) {
  const auto signal = parse_signal(log);
  return signal ? signal : parse_exit_code(log);
}

// "[host:32467] [[4653,0],0] odls:wait_local_proc child process [[4653,1],1] pid 32473 terminated"
std::vector<int> parse_mpirun_ends(const std::string& log) {
  static const std::string words = "odls:wait_local_proc child process [[";
  std::vector<int> ranks;
  for (std::size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) {
    int rank = -1;
    if (std::sscanf(log.c_str() + at + words.size(), "%*d,%*d],%d]", &rank) == 1) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace tutti::harness::launch
