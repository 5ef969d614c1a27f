// SPDX-License-Identifier: Apache-2.0
// LaunchLog: the output of ranks and mpirun besides the ranks' messages. It is shown only when a launch fails.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::launch {

class LaunchLog {
 public:
  /// Appends to `path`; an empty path keeps the log in memory. Errors: io naming the path.
  Status open(const std::filesystem::path& path);

  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// What was written since `open`, of that the last MiB.
  [[nodiscard]] std::string text() const;
  /// Its last 20 lines, without mpirun's protocol (see mpirun_command).
  [[nodiscard]] std::string tail() const;
  /// The telling_line of all its lines, without that protocol.
  [[nodiscard]] std::string telling() const;

 private:
  Descriptor file_;
  off_t start_ = 0;
};

/// The line of a log that says most about a failure: the first that speaks of one, else the last. Lines of dashes and
/// backtraces are passed over. Empty: there is none.
[[nodiscard]] std::string telling_line(std::string_view log);

}  // namespace tutti::harness::launch
