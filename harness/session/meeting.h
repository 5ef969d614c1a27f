// SPDX-License-Identifier: Apache-2.0
// Meeting: with what the rank of a host joins the world of a reference (TuttiBackendJoin). The board carries the bytes
// that the ranks hand each other.
#pragma once

#include <span>
#include <string>

#include "harness/backends/backend.h"
#include "harness/measure/host.h"

namespace tutti::harness::session {

class Meeting {
 public:
  /// `directory`: of the job; empty: it has none. `devices`: the GPUs of this host's ranks; empty: the library chooses,
  /// for its one rank. All outlive the meeting.
  Meeting(Host& host, const std::string& directory, std::span<const int> devices = {})
      : host_(host), directory_(directory), devices_(devices) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// For `open`, during which the meeting lives.
  [[nodiscard]] TuttiBackendJoin join();

 private:
  Host& host_;
  const std::string& directory_;
  std::span<const std::int32_t> devices_;
};

}  // namespace tutti::harness::session
