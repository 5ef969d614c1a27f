// SPDX-License-Identifier: Apache-2.0
// A schedule that somebody else made, as one of the library. Thread blocks become one program for each rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/exchange/msccl.h"
#include "impl/prove/prove.h"
#include "impl/schedule/schedule.h"

namespace tutti::harness::exchange {

inline constexpr int kUsualSlots = 8;  ///< of a channel, as a communicator has them
inline constexpr int kMostSlots = 1024;

struct Imported {
  std::string name;          ///< that the file has for itself
  Schedule schedule;         ///< its cost is derived; its slots are those with which the order was found
  bool is_in_place = false;  ///< right in place too: else out of place alone
  int blocks = 0;            ///< thread blocks that have steps
  int steps = 0;
  int least_slots = 0;  ///< of each channel of a thread block
  /// [rank][step of the schedule]: "gpu 2 tb 0 step 3 (rrs, line 14)"
  std::vector<std::vector<std::string>> places;
};

/// The schedule of an MSCCL XML text, examined: an order of its thread blocks is computed, conflicting accesses have an
/// order, `slots` suffice, and every output is right. Errors: invalid_argument as parse_msccl; refuted
/// naming gpu, thread block, step and line; unavailable for what a schedule cannot say.
[[nodiscard]] Result<Imported> import_msccl(std::string_view text, int slots = kUsualSlots);
/// The same of a file. Messages begin with its path.
[[nodiscard]] Result<Imported> import_file(const std::string& path, int slots = kUsualSlots);

/// Proves the plans of an imported schedule: slices of one, of several and of a single element, out of place and, where
/// it claims so, in place. Errors: refuted naming the form, and the step in the file.
[[nodiscard]] Result<ScheduleProof> prove_imported(const Imported& imported);

}  // namespace tutti::harness::exchange
