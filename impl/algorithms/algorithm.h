// SPDX-License-Identifier: Apache-2.0
// An algorithm: a pure function of (problem, rank, index) that gives one step. One file per algorithm under
// <collective>/<name>.cc defines one `const Algorithm`; CMake generates the list that names them all.
#pragma once

#include <span>
#include <string_view>

#include "impl/collective/collective.h"
#include "impl/schedule/schedule.h"

namespace tutti {

struct Algorithm {
  Collective collective;
  std::string_view name;
  std::string_view summary;  ///< one line for `tutti list`
  std::string_view source;   ///< paper or document
  Shape (*shape)(const Problem&);
  int (*step_count)(const Problem&, int rank);
  Step (*step)(const Problem&, int rank, int index);  ///< where it is turned, asked for rank 0's (schedule_of)
  Cost (*cost)(const Problem&, int rank);
  int (*least_slots)(const Problem&, int slices) = nullptr;  ///< nullptr: no channels
  bool synchronises = false;                                 ///< as Schedule::synchronises; checked by the prover
  bool synchronises_on_one_host = false;                     ///< where it does not on several
  bool stages_in_place = false;
  /// Right for blocks of different lengths, bound in one segment: nothing is exposed, nothing lies in scratch, and the
  /// slots needed do not depend on the slices.
  bool takes_counts = false;
  bool is_by_hosts = false;   ///< its steps are other ones where ranks_per_host is another
  bool is_by_caches = false;  ///< and where ranks_per_cache is
  /// Every rank does what rank 0 does, from its own place: the library turns rank 0's steps (schedule/turning.h). By
  /// columns, SIGNALs are each rank's own.
  Turning turning = Turning::none;
};

/// Every algorithm, sorted by collective and name.
[[nodiscard]] std::span<const Algorithm* const> all_algorithms();
/// Of a v form: those of its base that take counts.
[[nodiscard]] std::span<const Algorithm* const> algorithms_of(Collective collective);
/// Errors: invalid_argument naming the value and the nearest right name.
[[nodiscard]] Result<const Algorithm*> find_algorithm(Collective collective, std::string_view name);

/// For `least_slots`, where two ranks send to each other before they receive: the channel must hold a whole message.
[[nodiscard]] int slots_of_whole_message(const Problem& problem, int slices);
/// For `least_slots`, where no slot waits for another one of the same message: messages flow in one direction only, or
/// a send and a receive take turns.
[[nodiscard]] int one_slot(const Problem& problem, int slices);

[[nodiscard]] Schedule schedule_of(const Algorithm& algorithm, const Problem& problem);

}  // namespace tutti
