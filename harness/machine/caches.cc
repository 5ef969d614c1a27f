// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/caches.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tutti::harness::machine {
namespace {

/// The cores that share a core's last cache, as the kernel writes them; empty: it does not tell.
std::string sharers_of(const Tree& root, int core) {
  int level = 0;
  std::string sharers;
  for (const Cache& cache : caches_of(root, core)) {
    if (cache.level <= level || cache.type == "Instruction") continue;
    level = cache.level;
    sharers = cache.shared_cpus;
  }
  return sharers;
}

}  // namespace

std::vector<Cache> caches_of(const Tree& root, int core) {
  const std::string folder = fmt::format("sys/devices/system/cpu/cpu{}/cache", core);
  std::vector<Cache> caches;
  for (const int index : root.numbered(folder, "index")) {
    const std::string file = fmt::format("{}/index{}/", folder, index);
    caches.push_back({.level = static_cast<int>(root.number(file + "level").value_or(0)),
                      .type = root.text(file + "type"),
                      .bytes = cache_bytes_of(root.text(file + "size")),
                      .shared_cpus = root.text(file + "shared_cpu_list")});
  }
  return caches;
}

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
