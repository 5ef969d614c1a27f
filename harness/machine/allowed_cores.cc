// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/allowed_cores.h"

#include <algorithm>
#include <numeric>
#include <sched.h>
#include <unistd.h>

namespace tutti::harness::machine {

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    cores.resize(static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
    std::iota(cores.begin(), cores.end(), 0);
    return cores;
  }
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &mask)) cores.push_back(core);
  }
  return cores;
}

}  // namespace tutti::harness::machine
