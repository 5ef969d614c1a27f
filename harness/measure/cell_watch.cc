// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell_watch.h"

#include <utility>

namespace tutti::harness::measure {

CellWatch::CellWatch(Host& host, const std::vector<int>& cores, Tree machine)
    : host_(host),
      cores_(cores),
      machine_(std::move(machine)),
      watched_{.before = count_here(), .ranks_share_cores = host.yields()},
      before_(count_this_thread()) {}

Result<std::string> CellWatch::end() {
  struct Thread {
    ThreadCounted before, after;
  };
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Thread> all,
                         host_.exchange(Thread{.before = before_, .after = count_this_thread()}));
  watched_.after = count_here();
  for (const Thread& thread : all) add_thread(watched_, thread.before, thread.after);
  return disturbances_of(watched_);
}

CoresCounted CellWatch::count_here() const {
  return host_.index() == 0 ? count_cores(machine_, cores_) : CoresCounted();
}

}  // namespace tutti::harness::measure
