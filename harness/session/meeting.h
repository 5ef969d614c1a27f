// SPDX-License-Identifier: Apache-2.0
// Meeting: with what the rank of a host joins the world of a reference (TuttiBackendJoin). The board carries the bytes
// that the ranks hand each other.
#pragma once

#include <span>
#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/reference.h"
#include "harness/measure/host.h"

namespace tutti::harness::session {

class Meeting {
 public:
  /// `address`: at which other hosts reach this one; empty: there are none. `devices`: the GPUs of this host's ranks;
  /// empty: the library chooses, for its one rank. All outlive the meeting.
  Meeting(Host& host, const std::string& address, std::span<const int> devices = {})
      : host_(host), address_(address), devices_(devices) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The library's world. `first`: in the job, of this host's ranks. Errors: those of ReferenceBackend::open; where the
  /// ranks could not hand each other bytes why, which tells more than what the library makes of it.
  [[nodiscard]] Status open(ReferenceBackend& reference, int first);
  /// For as long as the meeting lives.
  [[nodiscard]] TuttiBackendJoin join();

 private:
  static int exchange(void* context, const void* mine, void* all, std::size_t bytes);

  Host& host_;
  const std::string& address_;
  std::span<const std::int32_t> devices_;
  Status failure_;
};

}  // namespace tutti::harness::session
