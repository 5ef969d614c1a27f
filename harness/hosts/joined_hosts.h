// SPDX-License-Identifier: Apache-2.0
// The hosts of a job that a starter has started once per rank, and what the processes need to become its ranks. Process
// 0 of the job becomes its launcher. The first process of each other host becomes what a launcher has there
// (host_process.h). The ranks then come to the process of their host, whose name they know.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "impl/bootstrap/init.h"
#include "impl/bootstrap/rendezvous.h"
#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"
#include "impl/types/host_list.h"
#include "impl/types/status.h"

namespace tutti::harness::hosts {

struct JoinedHost {
  std::string name;
  int first = 0;  ///< rank
  int ranks = 1;

  bool operator==(const JoinedHost&) const = default;
};

struct JoinedHosts {
  std::vector<JoinedHost> all;
  int own = 0;             ///< the number of this process's host
  tcp::Secret key;         ///< of this job alone
  std::string interface;   ///< at which this process's host is reached
  std::string launcher;    ///< at which the launcher listens
  tcp::Listener listener;  ///< process 0's, at that address

  /// As a topology is asked for them.
  [[nodiscard]] std::vector<NamedHost> named() const;
};

struct HostsMeeting {
  World world;
  Init init;
  tcp::Secret secret;       ///< the lasting one
  std::uint64_t start = 0;  ///< hash_of_start
  std::string interface;    ///< see address_of_interface; empty: of the route to process 0, which listens at its name's
  std::string build;
  std::string arguments;  ///< what the job is to do
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};
/// Completes a meeting of which world, build, arguments, timeout and perhaps the interface are given: where and with
/// what secret the processes meet is read from the environment. Errors: those of interface_from, init_from and
/// job_secret_from.
[[nodiscard]] Result<HostsMeeting> by_environment(HostsMeeting meeting);

/// Every process of the job calls it. It prints at once to stderr what a user should see before the end: another
/// secret, or a stranger at rank 0's address. Errors: mismatch is what all processes find alike, that one has another
/// build, other arguments or other numbers than rank 0; that one itself has unavailable. All others are of this process
/// alone: timeout naming what did not come, unavailable, io, invalid_argument.
[[nodiscard]] Result<JoinedHosts> meet_hosts(const HostsMeeting& meeting);

}  // namespace tutti::harness::hosts
