// SPDX-License-Identifier: Apache-2.0
// Examiner: a program by which a host process looks at its host. It tries libraries, which may take seconds, hang or
// crash. So it is a process of its own, and the host process goes on meanwhile.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

/// An examiner is killed after this time.
inline constexpr std::chrono::seconds kExaminerPatience{80};

class Examiner {
 public:
  Examiner() = default;
  ~Examiner() { end(); }
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  /// Starts `command`, which reads the question on stdin. Called once. Errors: those of spawn and memory_file.
  Status start(const std::vector<std::string>& command, std::string_view question);
  /// What it has printed on stdout and stderr, once it has exited with code 0. Does not block. Errors: unavailable with
  /// its exit code and last words; io if it has printed more than kMostExaminedBytes; timeout. Nothing follows either.
  [[nodiscard]] std::optional<Result<std::string>> step();
  /// Leaves nothing of it. Takes some ms, and at most 1 s: a process that the kernel holds is left to it.
  void end();

 private:
  pid_t pid_ = 0;  ///< 0: none runs
  Descriptor printed_;
  std::chrono::steady_clock::time_point ends_;
};

}  // namespace tutti::harness::hosts
