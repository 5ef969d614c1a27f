// SPDX-License-Identifier: Apache-2.0
// Visits to hosts: what each says of itself, whom it reaches, and what its clock shows (host_look.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/doctor/host_look.h"

namespace tutti::harness::doctor {

struct VisitRequest {
  std::vector<std::string> hosts;  ///< as the agent takes them
  std::string agent = "ssh";
  std::string interface;             ///< see find_interface; empty: of the route between launcher and host
  std::vector<std::string> program;  ///< that answers, the same on all hosts
};

/// Of the time of day, against the first host that answered.
struct ClockOffset {
  double ahead_ns = 0;
  double bound_ns = 0;  ///< half of the least round trips of both
};

struct Visit {
  std::string host;
  Status failure;  ///< why nothing else is known of it
  HostLook look;
  std::vector<Reach> reached;  ///< [host]; that of itself has nothing
  std::optional<ClockOffset> clock;
  double login_seconds = 0;  ///< from the start of the agent to the host's answer, without what it did for that
};

/// Of each host, in their order. All are asked at once; it takes at most some minutes. Errors: of this machine alone.
[[nodiscard]] Result<std::vector<Visit>> visit_hosts(const VisitRequest& request);

}  // namespace tutti::harness::doctor
