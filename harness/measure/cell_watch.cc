// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/cell_watch.h"

#include <algorithm>

namespace tutti::harness {

CellWatch::CellWatch(Host& host, const std::vector<int>& cores)
    : host_(host),
      cores_(cores),
      watched_{.before = count_here(), .ranks_share_cores = host.yields()},
      before_(count_this_thread()) {}

Result<std::string> CellWatch::end() {
  ThreadCounted mine = count_this_thread();
  mine.used_s -= before_.used_s;
  mine.switches -= before_.switches;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<ThreadCounted> all, host_.exchange(mine));
  watched_.after = count_here();
  for (const ThreadCounted& host : all) {
    watched_.used_s += host.used_s;
    watched_.most_switches = std::max(watched_.most_switches, host.switches);
  }
  return disturbances_of(watched_);
}

CoresCounted CellWatch::count_here() const {
  return host_.index() == 0 ? count_cores(Tree("/"), cores_) : CoresCounted();
}

}  // namespace tutti::harness
