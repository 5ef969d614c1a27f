// SPDX-License-Identifier: Apache-2.0
// When each step of a schedule happens on a machine. Every rank's program is walked in its order. A MOVE begins once
// its channels have arrived, and a WAIT ends once all flags are seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/floors.h"
#include "harness/simulate/model.h"
#include "impl/schedule/schedule.h"
#include "impl/types/status.h"

namespace tutti::harness::simulate {

/// In which order the steps of different ranks are taken.
enum class Order : std::uint8_t {
  programs,  ///< a rank goes on until it has to wait: fastest, and right if ranks share no interface and no link
  time,      ///< the earliest step of all ranks is next
};

struct WalkOptions {
  Order order = Order::programs;
  /// Only ranks 0 to period - 1 are walked: rank r + period does what rank r does, with peers `period` further on. 0:
  /// all ranks. Requires: divides the ranks, and is a multiple of the ranks of a node.
  int period = 0;
  bool keeps_path = false;   ///< fills Prediction::path; needs some 100 bytes for each step
  bool keeps_loads = false;  ///< fills Prediction::loads
};

/// Where time goes on a path. All in ns.
struct Parts {
  double processor = 0;  ///< sending and receiving
  double memory = 0;     ///< reducing, copying, reading
  double latency = 0;    ///< hops, handshakes and flags too
  double wire = 0;       ///< bytes that follow the first one
  double interface = 0;  ///< waiting for a busy interface
  double links = 0;      ///< waiting for a busy link

  [[nodiscard]] double sum() const { return processor + memory + latency + wire + interface + links; }
};

/// A step of the critical path, with what it waited for last.
struct PathStep {
  int rank = 0;
  int step = 0;
  int from = -1;     ///< whose message or flag it waited for; -1: only for the step before it
  double begin = 0;  ///< when that message or flag left, or the step before it ended
  double end = 0;    ///< when the next one of the path begins
  std::int64_t units = 0;
  Parts parts;  ///< of end - begin
};

/// How long an interface or a link is busy.
struct Load {
  std::string name;
  double busy = 0;
};

struct Prediction {
  double ns = 0;               ///< until the last rank is done
  std::vector<double> finish;  ///< of each rank that was walked, in ns
  std::uint64_t steps = 0;     ///< that were walked
  std::uint64_t messages = 0;
  std::vector<PathStep> path;  ///< what decides `ns`, from time 0 on
  std::vector<Load> loads;     ///< the busiest first; only what is ever busy
};

/// `block_bytes`: of one block of the schedule. Errors: unavailable if a rank reads or writes memory of another node,
/// which cannot be done there; refuted if a rank never gets on.
[[nodiscard]] Result<Prediction> walk(const Schedule& schedule, double block_bytes, const Machine& machine,
                                      const WalkOptions& options = {});

}  // namespace tutti::harness::simulate
