// SPDX-License-Identifier: Apache-2.0
// TUTTI_TORCH_RECORD=FILE: the collectives of a program as a trace that `tutti run --trace FILE` replays.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "impl/bindings/torch/lists.h"

namespace tutti::bindings {

/// What tutti run replays.
inline constexpr int kMostRecordedCalls = 10000;

/// One for a process, which writes if it has rank 0 in its first group. Thread-safe.
class Recorder {
 public:
  static Recorder& of_process();

  /// For each group that the process makes: itself, if the calls of that group are to be recorded, otherwise null.
  /// Throws if the file cannot be written.
  Recorder* for_group(int rank);

  /// A call of `ranks` ranks is about to be posted. The v forms of equal blocks are written as the plain ones.
  void note(const Call& call, int ranks);
  void note(const CallOfLists& call, int ranks);
  /// A call that was noted is over.
  void end_call();
  /// The calls from now on are of another step. Empty: its number. A name that was used gets a number behind it. Throws
  /// invalid_argument unless it is of letters, digits, '_' and '-'.
  void begin_step(const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  void write(const Call& call, std::int64_t bytes, std::string_view peer_bytes);

  std::mutex mutex_;
  bool has_group_ = false;
  std::FILE* file_ = nullptr;  // is closed with the process
  int calls_ = 0;
  int steps_ = 1;
  std::string step_ = "1";
  std::set<std::string> used_{"1", "whole"};
  Clock::time_point last_ = {};  // when the last call was posted or over
};

}  // namespace tutti::bindings
