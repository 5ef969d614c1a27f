// SPDX-License-Identifier: Apache-2.0
// PrivateDirectory: a directory for what mpirun and its ranks leave, which is session files and backing files of shared
// memory. The process that made it removes it, whatever happened to the ranks. The next launcher removes what a killed
// one left: the kernel released that one's lock.
#pragma once

#include <cstddef>
#include <string>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::process {

class PrivateDirectory {
 public:
  PrivateDirectory() = default;
  /// In /dev/shm if it has `bytes` to spare, else in the directory for temporary files. Errors: io.
  [[nodiscard]] static Result<PrivateDirectory> make(std::size_t bytes);
  /// Removes what killed launchers of this user left in /dev/shm. `make` does so too.
  static void remove_abandoned();
  PrivateDirectory(PrivateDirectory&& other) noexcept;
  PrivateDirectory& operator=(PrivateDirectory&& other) noexcept;
  ~PrivateDirectory() { remove(); }

  [[nodiscard]] const std::string& path() const { return path_; }
  void remove();

 private:
  std::string path_;
  Descriptor lock_;
};

}  // namespace tutti::harness::process
