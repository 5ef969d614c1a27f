// SPDX-License-Identifier: Apache-2.0
// Meeting: with what the rank of a runner joins the world of a reference (TuttiBackendJoin). The board carries the
// bytes that the ranks hand each other.
#pragma once

#include <span>
#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/reference.h"
#include "harness/measure/runner.h"

namespace tutti::harness::session {

class Meeting {
 public:
  /// `address`: at which other hosts reach this one; empty: there are none. `devices`: the GPUs of this runner's ranks;
  /// empty: the library chooses, for its one rank. All outlive the meeting.
  Meeting(Runner& runner, const std::string& address, std::span<const int> devices = {})
      : runner_(runner), address_(address), devices_(devices) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The library's world. `first`: in the job, of this runner's ranks. Errors: those of ReferenceBackend::open; where
  /// the ranks could not hand each other bytes why, which tells more than what the library makes of it.
  [[nodiscard]] Status open(ReferenceBackend& reference, int first);
  /// For as long as the meeting lives.
  [[nodiscard]] TuttiBackendJoin join();

 private:
  static int exchange(void* context, const void* mine, void* all, std::size_t bytes);

  Runner& runner_;
  const std::string& address_;
  std::span<const std::int32_t> devices_;
  Status failure_;
};

}  // namespace tutti::harness::session
