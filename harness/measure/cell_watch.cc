// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell_watch.h"

#include <array>
#include <unistd.h>
#include <utility>

#include "harness/record/record.h"

namespace tutti::harness::measure {

CellWatch::CellWatch(Runner& runner, const std::vector<int>& cores, Tree machine, const std::vector<int>& devices)
    : runner_(runner),
      cores_(cores),
      machine_(std::move(machine)),
      watched_{.before = count_here(), .ranks_share_cores = runner.yields()},
      before_(count_this_thread()) {
  for (const int device : devices) {
    const GpusSeen seen = look_at_gpu(device);
    if (!seen.gpus.empty()) gpus_.push_back({.device = device, .before = seen.gpus.front()});
  }
}

Result<std::string> CellWatch::end() {
  struct Thread {
    ThreadCounted before, after;
    std::array<char, 64> gpu{};  ///< words on those of its ranks
  };
  Thread mine{.before = before_, .after = count_this_thread()};
  std::string words;
  for (const WatchedGpu& one : gpus_) {
    const GpusSeen after = look_at_gpu(one.device);
    if (after.gpus.empty()) continue;
    add_disturbances(words, gpu_disturbances(one.before, after.gpus.front(), static_cast<unsigned>(::getpid())));
  }
  words.copy(mine.gpu.data(), mine.gpu.size() - 1);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Thread> all, runner_.exchange(mine));
  watched_.after = count_here();
  for (const Thread& thread : all) add_thread(watched_, thread.before, thread.after);
  std::string seen = disturbances_of(watched_);
  for (const Thread& thread : all) add_disturbances(seen, thread.gpu.data());
  return seen;
}

CoresCounted CellWatch::count_here() const {
  return runner_.index() == 0 ? count_cores(machine_, cores_) : CoresCounted();
}

}  // namespace tutti::harness::measure
