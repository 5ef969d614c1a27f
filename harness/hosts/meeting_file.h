// SPDX-License-Identifier: Apache-2.0
// The file of --init file://PATH: process 0 of a job writes its address, and the others read it. The writer of the file
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

  /// Process 0: replaces the file in one step by one that no other user can write. Errors: io.
  Status write(const std::string& address);
  /// The address; empty until the file is there, whole. Errors: unavailable if the file belongs to another user than
  /// this one or root; io if it cannot be read, or is no regular file.
  [[nodiscard]] Result<std::string> read() const;

 private:
  std::string path_;
  std::string written_;
};

}  // namespace tutti::harness::hosts
