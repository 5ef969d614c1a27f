// SPDX-License-Identifier: Apache-2.0
// Starter: the process that has started this one as a part of a job: mpirun, srun or torchrun. It may be killed without
// a word to its processes. They would then go on without a parent that knows them.
#pragma once

#include <sys/types.h>

#include "harness/floors.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::process {

class Starter {
 public:
  /// The nearest ancestor that is not itself in the job which this process's environment names: a shell between the two
  /// is no starter. No starter if the environment names none, or its process cannot be seen.
  [[nodiscard]] static Starter of_this_process();

  [[nodiscard]] pid_t pid() const { return pid_; }  ///< 0: there is none
  /// Readable once it has ended; -1: there is no starter, or the kernel gives no such descriptor.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] bool has_ended() const;

 private:
  pid_t pid_ = 0;
  Descriptor descriptor_;
};

/// From now on this process gets SIGTERM when its starter ends; nothing happens if it has none.
void end_with_starter();
/// From now on this process may use the cores that its starter may: Open MPI's default leaves it a single one. Nothing
/// where another one has started it, or a user asked for a binding (--bind-to, --cpu-set). Threads that run
/// already stay where they are.
void leave_binding();
/// What stands in the environment of all processes of a job of a starter, once they have joined.
inline constexpr const char* kJoined = "TUTTI_JOINED";
/// Whether this process is of such a job and may use fewer cores than its starter: it is bound.
[[nodiscard]] bool is_bound_by_starter();
/// Takes the variables of mpirun's and torchrun's job out of this process's environment: what it starts is another job.
void leave_job();

}  // namespace tutti::harness::process
