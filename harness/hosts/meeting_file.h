// SPDX-License-Identifier: Apache-2.0
// The file of --init file://PATH: process 0 of a job writes where it listens, and the others read it. Who writes it
// decides where they connect.
#pragma once

#include <string>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

class MeetingFile {
 public:
  explicit MeetingFile(std::string path) : path_(std::move(path)) {}
  /// Removes what it has written, unless another job has put its own file there.
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

  /// Process 0: replaces the file in one step by one that nobody else can write. Errors: io.
  Status write(const std::string& address);
  /// The address; empty until the file is there, whole. Errors: unavailable where the file is of another user than this
  /// one or root; io where it cannot be read, or is no regular file.
  [[nodiscard]] Result<std::string> read() const;

 private:
  std::string path_;
  std::string written_;
};

}  // namespace tutti::harness::hosts
