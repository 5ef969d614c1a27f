// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/condition.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "harness/machine/caches.h"
#include "harness/machine/memory.h"

namespace tutti::harness::doctor {
namespace {

constexpr std::string_view kCpus = "sys/devices/system/cpu";

std::string cpu_file(int core, std::string_view name) { return fmt::format("{}/cpu{}/{}", kCpus, core, name); }

double leading_decimal(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

/// "16384 kB" -> bytes.
std::int64_t kilobytes(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value << 10;
}

std::vector<int> common(const std::vector<int>& one, const std::vector<int>& other) {
  std::vector<int> both;
  std::ranges::set_intersection(one, other, std::back_inserter(both));
  return both;
}

void read_cores(MachineCondition& condition, const Tree& tree) {
  condition.cpu_model = cpu_model_of(tree.text("proc/cpuinfo"));
  condition.online = parse_cpu_list(tree.text(fmt::format("{}/online", kCpus)));
  if (condition.online.empty()) condition.online = tree.numbered(kCpus, "cpu");
  condition.allowed = parse_cpu_list(tree.field("proc/self/status", "Cpus_allowed_list"));
  if (condition.allowed.empty()) condition.allowed = condition.online;
  if (condition.online.empty()) condition.online = condition.allowed;  // without /sys, as in a sandbox
  condition.allowed = common(condition.allowed, condition.online);
  std::set<std::string> sockets;
  std::set<std::vector<int>> cores, shared;
  for (const int core : condition.online) {
    const std::string socket = tree.text(cpu_file(core, "topology/physical_package_id"));
    if (!socket.empty()) sockets.insert(socket);
    std::vector<int> threads = parse_cpu_list(tree.text(cpu_file(core, "topology/thread_siblings_list")));
    if (threads.empty()) threads = {core};
    cores.insert(threads);
    threads = common(threads, condition.allowed);
    if (threads.size() > 1) shared.insert(threads);
  }
  condition.sockets = static_cast<int>(sockets.size());
  condition.physical_cores = static_cast<int>(cores.size());
  condition.allowed_shared.assign(shared.begin(), shared.end());
  for (const int node : tree.numbered("sys/devices/system/node", "node")) {
    std::vector<int> list = parse_cpu_list(tree.text(fmt::format("sys/devices/system/node/node{}/cpulist", node)));
    if (!list.empty()) condition.numa.push_back(std::move(list));  // a node may hold memory alone
  }
}

void read_caches(MachineCondition& condition, const Tree& tree) {
  if (condition.allowed.empty()) return;
  for (Cache& cache : caches_of(tree, condition.allowed.front())) {
    if (cache.type != "Instruction") condition.caches.push_back(std::move(cache));
  }
}

void read_speed(MachineCondition& condition, const Tree& tree) {
  const int core = condition.allowed.empty() ? 0 : condition.allowed.front();
  condition.governor = tree.text(cpu_file(core, "cpufreq/scaling_governor"));
  if (const auto no_turbo = tree.number(fmt::format("{}/intel_pstate/no_turbo", kCpus))) {
    condition.has_turbo = *no_turbo == 0;
  } else if (const auto boost = tree.number(fmt::format("{}/cpufreq/boost", kCpus))) {
    condition.has_turbo = *boost != 0;
  }
  condition.clock_source = tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource");
}

void read_host(MachineCondition& condition, const Tree& tree) {
  const std::string flags = fmt::format(" {} ", tree.field("proc/cpuinfo", "flags"));
  condition.is_virtual = flags.find(" hypervisor ") != std::string::npos || tree.exists("sys/hypervisor/type");
  const std::string vendor = tree.text("sys/class/dmi/id/sys_vendor");
  static const std::map<std::string, std::string> kNames{{"QEMU", "QEMU/KVM"},
                                                         {"Amazon EC2", "Amazon EC2"},
                                                         {"Google", "Google Compute Engine"},
                                                         {"Microsoft Corporation", "Hyper-V"},
                                                         {"VMware, Inc.", "VMware"},
                                                         {"Xen", "Xen"},
                                                         {"innotek GmbH", "VirtualBox"}};
  if (const auto name = kNames.find(vendor); condition.is_virtual && name != kNames.end()) {
    condition.hypervisor = name->second;
  }
  condition.is_container = tree.exists(".dockerenv") || tree.exists("run/.containerenv");
  condition.load = leading_decimal(tree.text("proc/loadavg"));
  std::istringstream stat(tree.text("proc/stat"));
  std::string word;
  stat >> word;
  constexpr int kSteal = 7;  // user nice system idle iowait irq softirq steal; guests are in user and nice
  double all = 0, steal = 0;
  for (int column = 0; column <= kSteal && stat >> word; ++column) {
    all += leading_decimal(word);
    if (column == kSteal) steal = leading_decimal(word);
  }
  condition.steal_fraction = all > 0 ? steal / all : 0;
  condition.kernel = tree.text("proc/sys/kernel/osrelease");
}

template <class T>
void keep_least(std::optional<T>& least, T value) {
  if (!least || value < *least) least = value;
}

/// Limits of version 2, where one folder holds all; then of version 1. A limit of a parent holds for its children.
void read_limits(MachineCondition& condition, const Tree& tree) {
  for (const std::string& folder : cgroup_folders(tree, "", "sys/fs/cgroup")) {
    std::istringstream max(tree.text(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (max >> quota >> period && period > 0) keep_least(condition.quota_cores, quota / period);
  }
  for (const std::string& folder : cgroup_folders(tree, "cpu", "sys/fs/cgroup/cpu")) {
    const auto quota = tree.number(folder + "/cpu.cfs_quota_us");
    const auto period = tree.number(folder + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) {
      keep_least(condition.quota_cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  }
  for (const CgroupMemory& one : cgroup_memory(tree)) keep_least(condition.memory_limit, one.limit);
}

void read_memory(MachineCondition& condition, const Tree& tree) {
  condition.memory_bytes = kilobytes(tree.field("proc/meminfo", "MemTotal"));
  condition.available_bytes = kilobytes(tree.field("proc/meminfo", "MemAvailable"));
  const std::string reserved = tree.field("proc/meminfo", "HugePages_Total");
  std::from_chars(reserved.data(), reserved.data() + reserved.size(), condition.reserved_huge_pages);
  const std::string choice = tree.text("sys/kernel/mm/transparent_hugepage/enabled");  // always [madvise] never
  const std::size_t open = choice.find('['), close = choice.find(']');
  if (open < close && close != std::string::npos) condition.huge_pages = choice.substr(open + 1, close - open - 1);
}

void read_references(MachineCondition& condition, const Tree& tree) {
  if (const auto scope = tree.number("proc/sys/kernel/yama/ptrace_scope")) {
    condition.ptrace_scope = static_cast<int>(*scope);
  }
  const std::string capabilities = tree.field("proc/self/status", "CapEff");
  std::uint64_t bits = 0;
  constexpr int kHexadecimal = 16, kSysPtrace = 19;
  std::from_chars(capabilities.data(), capabilities.data() + capabilities.size(), bits, kHexadecimal);
  condition.may_ptrace = ((bits >> kSysPtrace) & 1U) != 0;
  for (const std::string& folder : condition.probes.programs_path) {
    const std::string path = folder + "/mpirun";
    if (path.size() < 2 || path[0] != '/' || !tree.exists(std::string_view(path).substr(1))) continue;
    condition.mpirun = path;
    break;
  }
  const auto nvidia = tree.numbered("dev", "nvidia");
  for (const int gpu : nvidia) condition.gpus.push_back(fmt::format("nvidia{}", gpu));
  if (tree.exists("dev/kfd")) condition.gpus.emplace_back("amd");
}

}  // namespace

MachineCondition read_condition(const Tree& tree, Probes probes) {
  MachineCondition condition;
  condition.probes = std::move(probes);
  read_cores(condition, tree);
  read_caches(condition, tree);
  read_speed(condition, tree);
  read_host(condition, tree);
  read_limits(condition, tree);
  read_memory(condition, tree);
  read_references(condition, tree);
  return condition;
}

}  // namespace tutti::harness::doctor
