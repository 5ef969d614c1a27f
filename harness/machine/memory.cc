// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/memory.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace tutti::harness::machine {
namespace {

/// Pages of files, which the kernel drops before it kills anybody. Version 1 has totals of the groups below besides.
std::int64_t reclaimable_bytes(const std::string& stat) {
  std::map<std::string, std::int64_t> values;
  std::istringstream lines(stat);
  std::string key;
  for (std::int64_t value = 0; lines >> key >> value;) values[key] = value;
  const bool has_totals = values.contains("total_inactive_file");
  const std::string prefix = has_totals ? "total_" : "";
  return values[prefix + "inactive_file"] + values[prefix + "active_file"];
}

struct Version {
  std::string_view controller, mount, limit, used;
};
constexpr Version kVersions[] = {
    {"", "sys/fs/cgroup", "memory.max", "memory.current"},
    {"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

}  // namespace

std::vector<CgroupMemory> cgroup_memory(const Tree& tree) {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;  // what "no limit" looks like in version 1
  std::vector<CgroupMemory> all;
  for (const Version& version : kVersions) {
    for (const std::string& folder : cgroup_folders(tree, version.controller, version.mount)) {
      const auto limit = tree.number(fmt::format("{}/{}", folder, version.limit));
      if (!limit || *limit >= kNoLimit) continue;
      const std::int64_t used = tree.number(fmt::format("{}/{}", folder, version.used)).value_or(0);
      const std::int64_t cached = reclaimable_bytes(tree.text(folder + "/memory.stat"));
      all.push_back({.limit = *limit, .used = std::max<std::int64_t>(0, used - cached)});
    }
  }
  return all;
}

std::string memory_text(double bytes) {
  constexpr double kMiB = 1U << 20U, kGiB = 1U << 30U;
  return bytes >= kGiB ? fmt::format("{:.1f} GiB", bytes / kGiB) : fmt::format("{:.0f} MiB", bytes / kMiB);
}

std::string MemoryLeft::text() const {
  return fmt::format("{} are left of the {} of {}", memory_text(static_cast<double>(bytes)),
                     memory_text(static_cast<double>(of)), is_of_cgroup ? "the cgroup" : "the machine");
}

MemoryLeft memory_left(const Tree& tree) {
  MemoryLeft left;
  const auto machine = [&](std::string_view key) {
    return std::strtoll(tree.field("proc/meminfo", key).c_str(), nullptr, 10) << 10;  // "16384 kB"
  };
  if (const std::int64_t bytes = machine("MemAvailable"); bytes > 0) left = {.bytes = bytes, .of = machine("MemTotal")};
  for (const CgroupMemory& one : cgroup_memory(tree)) {
    const std::int64_t bytes = std::max<std::int64_t>(0, one.limit - one.used);
    if (bytes < left.bytes) left = {.bytes = bytes, .of = one.limit, .is_of_cgroup = true};
  }
  return left;
}

}  // namespace tutti::harness::machine
