// SPDX-License-Identifier: Apache-2.0
// A soak. A runner drives its ranks through a mix of operations, up to 32 in flight on each. It completes them in any
// order and verifies every one, barriers by when all ranks entered and left them. Each rank draws its own depth, pauses
// and order; what is called is the mix's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "harness/backends/group.h"
#include "harness/cases/ranks_as.h"
#include "harness/measure/runner.h"

namespace tutti::harness::soak {

inline constexpr int kSoakDepth = 32;
/// Of each rank, for shared buffers of all that is in flight.
inline constexpr std::size_t kSoakHeapBytes = std::size_t{48} << 20U;

/// What all ranks found, as the message `soak` tells it.
struct SoakResult {
  std::int64_t verified = 0;  ///< operations, on each rank that took part
  std::int64_t wrong = 0;
  std::string first_wrong;
  std::int64_t barriers = 0;  ///< of the verified operations, judged by when all ranks entered and left; each once
  std::int64_t most_in_flight = 0;              ///< operations that one rank had posted and not completed
  std::map<std::string, std::int64_t> not_run;  ///< what the system under test refused, counted alike, by its reason
  std::int64_t leaked_descriptors = 0;
  std::int64_t leaked_mappings = 0;  ///< of memory of groups
  std::uint64_t steps = 0;           ///< where the order is drawn (harness/measure/order.h)
  std::uint64_t trace = 0;
};
[[nodiscard]] std::string to_json(const SoakResult& result);
[[nodiscard]] Result<SoakResult> soak_from_json(std::string_view text);

/// How far runner 0 is, as the message `soaked` tells it now and then.
struct SoakProgress {
  std::int64_t posted = 0;    ///< operations of the mix
  std::int64_t verified = 0;  ///< on runner 0's ranks
  std::int64_t wrong = 0;     ///< of these
};
[[nodiscard]] std::string to_json(const SoakProgress& progress);
[[nodiscard]] Result<SoakProgress> soak_progress_from_json(std::string_view text);

struct SoakSpec {
  std::int64_t operations = 0;
  std::uint64_t seed = 1;
  int ranks = 1;
  RanksAs ranks_as = RanksAs::processes;
  bool spans_hosts = false;                                     ///< so that connections are made on first use, and stay
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of one operation
};

struct SoakPlace {
  Runner& runner;
  /// Makes a rank's seat in the world of the system under test.
  std::function<Result<std::unique_ptr<Group>>(int rank)> world;
  /// Of runner 0, some times in a second.
  std::function<Status(const SoakProgress& progress)> on_progress = {};
};
/// Runner 0's is the result of all runners. Errors: those of operations and of the runner; the job is then over.
[[nodiscard]] Result<SoakResult> run_soak(const SoakSpec& spec, const SoakPlace& place);

}  // namespace tutti::harness::soak
