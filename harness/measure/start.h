// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job come together before a sample (--sync).
//
// - roundtime: at an announced instant. A rank may come to it late, because it was held up or because the announcement
//   reached it too late. The sample then times the waiting for that rank. Such a sample is marked on all runners and
//   made again.
// - dissemination and library: each rank starts when it leaves a barrier. So no rank is late. What their leaving apart
//   costs is in the times, and how far apart they were is told with each sample.
//
// Starts at announced instants: Hunold & Carpen-Amarie, Hierarchical clock synchronization in MPI, 2018 (Round-Time).
// What each way of starting does to a measured time: the same, Reproducible MPI benchmarking is still not as easy as
// you think, 2016.
#pragma once

#include "harness/cases/conditions.h"
#include "harness/measure/runner.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {

struct Start {
  Synchronisation how = Synchronisation::roundtime;
  /// For library: a barrier on the system under test. Where it is null, as for the machine's limit, a dissemination
  /// barrier takes its place.
  Variant* barrier = nullptr;
  /// The runners of all groups, which start together; null: those of the runner's own group, or of the job.
  Runner* together = nullptr;
};

/// Whose runners start together, and which knows the instant.
[[nodiscard]] inline Runner& starting(Runner& runner, const Start& how) {
  return how.together != nullptr ? *how.together : runner;
}
/// Returns when the ranks of this runner are to begin; its instant is starting().last_start(). All runners call it.
/// Errors: those of the runner and of the barrier.
[[nodiscard]] Status start(Runner& runner, const Start& how);

}  // namespace tutti::harness::measure
