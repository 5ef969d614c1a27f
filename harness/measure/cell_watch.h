// SPDX-License-Identifier: Apache-2.0
// CellWatch notes what disturbed a cell while it was measured, as seen from outside. The first runner of each machine
// looks at that machine: the cores of its ranks, its control group, and whether it stood still. Each runner looks at
// its own thread and at the GPUs of its ranks.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/machine/disturbance.h"
#include "harness/machine/gpu.h"
#include "harness/measure/crowd.h"
#include "harness/measure/runner.h"

namespace tutti::harness::measure {

/// Where the ranks of a cell are.
struct WatchedPlace {
  std::vector<int> cores = {};  ///< of all ranks on this runner's kernel
  /// [runner] the number of its kernel: hosts of one kernel have their cores in common. Empty: there is one kernel.
  std::vector<int> kernels = {};
  std::vector<std::string> host_names = {};  ///< [machine]; empty: words name no host
  const Crowd* crowd = nullptr;              ///< in this process: what it takes was asked for, and disturbs nothing
};

class CellWatch {
 public:
  /// Begins. `place` outlives the watch. `devices`: CUDA's numbers of the GPUs of this runner's ranks.
  CellWatch(Runner& runner, const WatchedPlace& place, Tree machine = Tree("/"), const std::vector<int>& devices = {});
  /// What was seen since, on runner 0: words of disturbances_of, in a job on several hosts each with its host. Other
  /// runners get an empty text. All runners call it. Errors: those of the runner.
  [[nodiscard]] Result<std::string> end();

 private:
  /// What a runner has seen.
  struct Seen {
    ThreadCounted thread_before, thread_after;
    double crowd_s = 0;                      ///< of cores, that its crowd had
    CoresCounted cores_before, cores_after;  ///< of a lookout
    bool is_lookout = false;
    bool has_stood = false;      ///< of a lookout: the ranks of its machine were all stopped and continued
    std::array<char, 64> gpu{};  ///< words on the GPUs of its ranks
  };
  /// What a lookout has counted, with the threads of the ranks that its cores are for.
  [[nodiscard]] Watched watched_by(std::size_t lookout, const std::vector<Seen>& all) const;
  /// Whether this runner looks at its machine.
  [[nodiscard]] bool is_lookout() const { return runner_.is_first_on_machine(); }
  [[nodiscard]] CoresCounted count_here() const;
  /// If this thread had no core for so long that it may have been stopped, gives that process a moment to notice.
  void await_watcher() const;
  /// What the crowd of this process has had so far.
  [[nodiscard]] double crowd_s() const { return place_.crowd == nullptr ? 0 : place_.crowd->used_s(); }

  Runner& runner_;
  const WatchedPlace& place_;
  Tree machine_;
  CoresCounted cores_before_;
  ThreadCounted thread_before_;
  double crowd_before_s_;
  std::int64_t begun_ns_;
  struct WatchedGpu {
    int device = 0;
    GpuSeen before;
  };
  std::vector<WatchedGpu> gpus_;  // none where NVML is not there
};

/// One text of what was seen on each host: "load on a; load on b; steal on b". If five hosts or more have the same
/// word, it names three of them and counts the others. Shapes: both lists have one entry per host.
[[nodiscard]] std::string words_on_hosts(const std::vector<std::string>& words_of_hosts,
                                         const std::vector<std::string>& host_names);

}  // namespace tutti::harness::measure
