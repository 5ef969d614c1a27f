// SPDX-License-Identifier: Apache-2.0
// Stands for eu-stack, which may not be there, and whose stacks differ from machine to machine.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "harness/floors.h"

namespace tutti::harness::process {

/// While it lives, this script of the shell is the only program in PATH, and eu-stack. None: there is no eu-stack.
class ReaderDouble {
 public:
  explicit ReaderDouble(const std::string& script) : path_before_(std::getenv("PATH")) {
    std::string name = testing::TempDir() + "tutti-reader-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    const std::filesystem::path reader = folder_ / "eu-stack";
    if (!script.empty()) {
      std::ofstream(reader) << "#!/bin/sh\nPATH=/usr/bin:/bin\necho $$ > " << begun().string() << "\n"
                            << script << "\n";
      std::filesystem::permissions(reader, std::filesystem::perms::owner_all);
    }
    ::setenv("PATH", folder_.c_str(), 1);
  }
  ~ReaderDouble() {
    ::setenv("PATH", path_before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  ReaderDouble(const ReaderDouble&) = delete;
  ReaderDouble& operator=(const ReaderDouble&) = delete;

  /// The pid of the last one that has begun; 0: none has.
  [[nodiscard]] int pid() const {
    int pid = 0;
    std::ifstream(begun()) >> pid;
    return pid;
  }

 private:
  [[nodiscard]] std::filesystem::path begun() const { return folder_ / "begun"; }

  std::string path_before_;
  std::filesystem::path folder_;
};

/// One that prints a stack of one frame.
inline constexpr const char* kPrintsAStack = "echo 'TID 17:'; echo '#0  0x0000000000000017 poll'";
inline constexpr const char* kNeverEnds = "exec sleep 60";

}  // namespace tutti::harness::process
