// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/caches.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/machine/machine.h"

namespace tutti::harness::machine {
namespace {

/// The cores that share a core's last cache, as the kernel writes them; empty: it does not tell.
std::string sharers_of(const Tree& root, int core) {
  const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/cache", core);
  std::int64_t level = 0;
  std::string sharers;
  for (const int index : root.numbered(folder, "index")) {
    const std::string cache = fmt::format("{}/index{}/", folder, index);
    const std::int64_t its_level = root.number(cache + "level").value_or(0);
    if (its_level <= level || root.text(cache + "type") == "Instruction") continue;
    level = its_level;
    sharers = root.text(cache + "shared_cpu_list");
  }
  return sharers;
}

}  // namespace

LastLevelCache last_level_cache() {
  LastLevelCache last;
  int level = 0;
  for (const Cache& cache : describe_machine().caches) {
    if (cache.level <= level || cache.type == "Instruction" || cache.bytes <= 0) continue;
    level = cache.level;
    last = {.bytes = cache.bytes, .cores = std::max(1, static_cast<int>(parse_cpu_list(cache.shared_cpus).size()))};
  }
  return last;
}

int cores_per_cache(const Tree& root, std::span<const int> cores) {
  std::vector<std::string> caches;  // each as often as cores of it follow each other
  std::vector<int> widths;
  for (const int core : cores) {
    std::string sharers = sharers_of(root, core);
    if (sharers.empty()) return 0;
    if (!caches.empty() && sharers == caches.back()) {
      ++widths.back();
      continue;
    }
    if (std::ranges::find(caches, sharers) != caches.end()) break;
    caches.push_back(std::move(sharers));
    widths.push_back(1);
  }
  if (widths.size() < 2 || widths.front() < 2 || widths.back() > widths.front()) return 0;
  const bool is_even =
      std::all_of(widths.begin(), widths.end() - 1, [&](int width) { return width == widths.front(); });
  return is_even ? widths.front() : 0;
}

}  // namespace tutti::harness::machine
