// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell_watch.h"

#include <array>
#include <unistd.h>
#include <utility>

#include "harness/record/record.h"

namespace tutti::harness::measure {

CellWatch::CellWatch(Host& host, const std::vector<int>& cores, Tree machine, std::optional<int> device)
    : host_(host),
      cores_(cores),
      machine_(std::move(machine)),
      watched_{.before = count_here(), .ranks_share_cores = host.yields()},
      before_(count_this_thread()),
      device_(device) {
  if (device_) gpu_before_ = look_at_gpu(*device_);
}

Result<std::string> CellWatch::end() {
  struct Thread {
    ThreadCounted before, after;
    std::array<char, 64> gpu{};  ///< words on it
  };
  Thread mine{.before = before_, .after = count_this_thread()};
  const GpusSeen gpu = gpu_before_.gpus.empty() ? GpusSeen() : look_at_gpu(*device_);
  if (!gpu.gpus.empty()) {
    const auto own = static_cast<unsigned>(::getpid());
    const std::string words = gpu_disturbances(gpu_before_.gpus.front(), gpu.gpus.front(), own);
    words.copy(mine.gpu.data(), mine.gpu.size() - 1);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Thread> all, host_.exchange(mine));
  watched_.after = count_here();
  for (const Thread& thread : all) add_thread(watched_, thread.before, thread.after);
  std::string seen = disturbances_of(watched_);
  for (const Thread& thread : all) add_disturbances(seen, thread.gpu.data());
  return seen;
}

CoresCounted CellWatch::count_here() const {
  return host_.index() == 0 ? count_cores(machine_, cores_) : CoresCounted();
}

}  // namespace tutti::harness::measure
