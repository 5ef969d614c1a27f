// SPDX-License-Identifier: Apache-2.0
// A finding: what may have ended a job. One death shows in several ways and in any order: the connection ends, a child
// can be waited for, mpirun speaks, other ranks complain. The launcher collects findings for an instant and keeps the
// one that explains most (outweighs).
#pragma once

#include <string>
#include <sys/types.h>

#include "harness/launch/job.h"

namespace tutti::harness::launch {

struct Finding {
  Ending how = Ending::exited;
  int rank = -1;
  int number = 0;
  Code code = Code::aborted;
  std::string text;
  bool is_certain = true;  ///< false: the connection ended, and why is not known yet
};

/// The connection of a rank ended without a bye.
[[nodiscard]] Finding lost_connection(int rank, const std::string& who);
/// A process ended: `who` is "rank 3 (pid 17)" or "mpirun (pid 17)".
[[nodiscard]] Finding killed_by(int rank, const std::string& who, int signal);
[[nodiscard]] Finding exited_with(int rank, const std::string& who, int exit_code);
[[nodiscard]] Finding from_wait_status(int rank, const std::string& who, int wait_status);
/// This process got a signal that ends the job.
[[nodiscard]] Finding interrupted_by(int signal);
[[nodiscard]] std::string name_of(int rank, pid_t pid);

/// Whether `later` explains more than `earlier`, which came first. It does if it is the end of the same rank. It
/// does if a rank was killed and another one only complained or left. A stop, a hang and an interruption explain
/// everything. What is known of a rank explains that another one has heard of a failure.
[[nodiscard]] bool outweighs(const Finding& later, const Finding& earlier);
/// Whether nothing can come that explains more.
[[nodiscard]] bool is_final(const Finding& finding);

}  // namespace tutti::harness::launch
