// SPDX-License-Identifier: Apache-2.0
// Leftovers: files that a rank's MPI library leaves behind when they are killed while they start. The
// backing files of MPICH's shared memory are such: they have no place of the job's own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::process {

class Leftovers {
 public:
  Leftovers() = default;
  /// Notes what is there before the job. `beginnings`: of their paths, down to a part of the name.
  explicit Leftovers(std::vector<std::string> beginnings);

  /// Removes what is new, belongs to this user, and is mapped by no process that can be seen. Others of the same
  /// library may be starting meanwhile: what they are about to map is theirs to lose, so this is for jobs that failed.
  void remove() const;

 private:
  [[nodiscard]] std::set<std::string> present() const;

  std::vector<std::string> beginnings_;
  std::set<std::string> before_;
};

}  // namespace tutti::harness::process
