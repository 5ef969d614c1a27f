// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/findings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/sweep.h"
#include "harness/text/counted.h"

namespace tutti::harness::doctor {
namespace {

constexpr double kMostSteal = 0.01;
constexpr double kMostLoad = 0.5;  // of the allowed cores
constexpr std::int64_t kLittleMemory = std::int64_t{1} << 30;
constexpr std::int64_t kLittleShm = std::int64_t{128} << 20;

using List = std::vector<Symptom>;

std::string cores_text(std::size_t number) { return counted(number, "core"); }

void look_at_what_blocks(const MachineCondition& c, List& list) {
  if (!c.probes.memory_refusal.empty()) {
    list.push_back({"memory", Severity::blocks, "shared memory cannot be had: " + c.probes.memory_refusal,
                    "ranks as processes meet in memory that they share (memfd_create)",
                    "run on Linux 3.17 or newer, in a sandbox that allows memfd_create, with memory to spare"});
  }
  if (!c.probes.socket_refusal.empty()) {
    list.push_back({"sockets", Severity::blocks, "a local socket cannot be had: " + c.probes.socket_refusal,
                    "ranks report to the launcher through one", "allow sockets of the family AF_UNIX in the sandbox"});
  }
  if (c.allowed.empty()) {
    list.push_back({"cores", Severity::blocks, "no core is known that this process may use",
                    "ranks are placed on cores", "mount /proc and /sys, or look at the affinity mask: taskset -p $$"});
  }
}

void look_at_time(const MachineCondition& c, List& list) {
  const std::size_t allowed = c.allowed.size();
  if (c.quota_cores && *c.quota_cores < static_cast<double>(allowed)) {
    list.push_back(
        {"quota", Severity::spoils,
         fmt::format("the cgroup grants the time of {:.2f} cores, and {} may be used", *c.quota_cores, allowed),
         "ranks wait by spinning; together they use up the quota, and all are stopped until its next period, up to 100 "
         "ms later",
         fmt::format("at most {}, or a quota of {} (docker run --cpuset-cpus instead of --cpus)",
                     counted(std::max(1, static_cast<int>(std::floor(*c.quota_cores))), "rank"), cores_text(allowed))});
  }
  if (c.load > kMostLoad * static_cast<double>(allowed)) {
    list.push_back({"load", Severity::spoils, fmt::format("a load of {:.2f} on {}", c.load, cores_text(allowed)),
                    "others take cores from ranks in the middle of an operation; the slowest rank decides its time",
                    "wait until the machine is idle, or keep cores for the run (taskset, cpusets)"});
  }
  if (c.steal_fraction > kMostSteal) {
    list.push_back({"steal", Severity::spoils,
                    fmt::format("{:.1f} % of the time since the start went to other machines of this host",
                                100 * c.steal_fraction),
                    "a virtual core that is not running holds up all ranks", "use a dedicated host"});
  }
  if (c.clock_source == "hpet" || c.clock_source == "acpi_pm" || c.clock_source == "jiffies") {
    list.push_back({"clock", Severity::spoils, "the clock source is " + c.clock_source,
                    "reading it takes a microsecond and a system call, longer than a small collective",
                    "boot with clocksource=tsc, where the processor has an invariant one"});
  }
}

void look_at_speed(const MachineCondition& c, List& list) {
  if (!c.governor.empty() && c.governor != "performance") {
    list.push_back({"governor", Severity::spoils, "the cores' clocks follow the governor " + c.governor,
                    "the first samples run at a low clock, and how fast it rises depends on what ran before",
                    "cpupower frequency-set -g performance"});
  }
  if (c.has_turbo.value_or(false)) {
    list.push_back({"turbo", Severity::note, "turbo is on",
                    "the clock depends on how many cores are busy and how warm they are: fewer ranks look faster than "
                    "they are",
                    "for runs that are compared over days: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or "
                    "0 > /sys/devices/system/cpu/cpufreq/boost"});
  }
  if (c.is_virtual) {
    list.push_back(
        {"virtual", Severity::note,
         c.hypervisor.empty() ? "a virtual machine" : fmt::format("a virtual machine ({})", c.hypervisor),
         "where its cores lie on the host may change within minutes; a line then takes 0.1 or 0.5 us from one to "
         "the other, and all times follow",
         "compare only what was measured in one run, in one state: the column line_ns shows it"});
  }
}

void look_at_places(const MachineCondition& c, List& list) {
  if (c.allowed.size() < c.online.size()) {
    list.push_back({"affinity", Severity::note,
                    fmt::format("{} of {} may be used", c.allowed.size(), cores_text(c.online.size())),
                    "more ranks than that share cores, and a scheduler is measured with them",
                    fmt::format("at most {}, or a wider mask (taskset, cpuset of the container)",
                                counted(c.allowed.size(), "rank"))});
  }
  if (!c.allowed_shared.empty()) {
    std::vector<std::string> sets;
    for (const auto& threads : c.allowed_shared) sets.push_back(fmt::format("{}", fmt::join(threads, "+")));
    constexpr std::size_t kMost = 4;
    if (sets.size() > kMost) {
      sets.resize(kMost);
      sets.emplace_back("...");
    }
    list.push_back({"threads", Severity::note,
                    fmt::format("some of the allowed cores are threads of one physical core: {}", fmt::join(sets, " ")),
                    "two ranks on one of them share its caches and its units: neither a rank with a core of its own "
                    "nor one without",
                    "name one thread of each: taskset -c 0,1,... tutti run"});
  }
  int nodes = 0;
  for (const auto& node : c.numa) {
    nodes += std::ranges::any_of(node, [&](int core) { return std::ranges::find(c.allowed, core) != c.allowed.end(); });
  }
  if (nodes > 1) {
    list.push_back({"numa", Severity::note, fmt::format("the allowed cores lie on {} NUMA nodes", nodes),
                    "a line, and a page, from another node takes two to three times as long",
                    "--bind numa spreads ranks over the nodes; numactl --cpunodebind=0 --membind=0 keeps them on one"});
  }
}

void look_at_memory(const MachineCondition& c, List& list) {
  const std::int64_t usable = std::min(c.available_bytes, c.memory_limit.value_or(c.available_bytes));
  if (usable > 0 && usable < kLittleMemory) {
    list.push_back({"little_memory", Severity::note,
                    fmt::format("{:.1f} GiB of memory are free", std::ldexp(usable, -30)),
                    "sizes whose buffers do not fit are skipped; near the limit, the kernel takes time to make room",
                    "smaller --sizes, or fewer ranks"});
  }
  if (c.huge_pages == "never") {
    list.push_back({"huge_pages", Severity::note, "transparent huge pages are off",
                    "large buffers lie on many small pages: their times include the processor's page walks",
                    "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; or compare with machines alike only"});
  }
  if (c.probes.shm_bytes && *c.probes.shm_bytes < kLittleShm) {
    list.push_back({"dev_shm", Severity::spoils, fmt::format("/dev/shm has {}", format_bytes(*c.probes.shm_bytes)),
                    "MPIs keep their shared memory there: with too little they fail, or fall back to slower ways; "
                    "tutti itself does not use it",
                    "docker run --shm-size=1g, or --ipc=host"});
  }
}

void look_at_references(const MachineCondition& c, List& list) {
  if (c.ptrace_scope.value_or(0) > 0 && !c.may_ptrace) {
    list.push_back({"ptrace", Severity::note, fmt::format("kernel.yama.ptrace_scope is {}", *c.ptrace_scope),
                    "MPIs copy large messages once where a process may read another's memory; here they copy twice, "
                    "and look slower than they are",
                    "sysctl kernel.yama.ptrace_scope=0, while references are measured"});
  }
  for (const UnusableBackend& one : c.probes.unusable) {
    list.push_back(
        {"backend", Severity::note, fmt::format("the reference {} cannot be used", one.name), one.why,
         "what the reason says; else build it again with scripts/build-backend, or remove its shared object"});
  }
  if (c.probes.backends.empty() && c.probes.unusable.empty()) {
    list.push_back({"references", Severity::note, "no reference was found beside tutti",
                    "without one there are times, and no ratios",
                    c.mpirun.empty() ? "scripts/setup installs some; then build again"
                                     : "scripts/build-backend builds the one of the MPI that is here"});
  }
}

void look_at_gpus_of(const MachineCondition& c, List& list) {
  for (std::size_t i = 0; i < c.probes.gpus.gpus.size(); ++i) {
    const GpuSeen& gpu = c.probes.gpus.gpus[i];
    if (const std::string reasons = throttling_text(gpu.throttling); !reasons.empty()) {
      list.push_back({"gpu_throttled", Severity::spoils, fmt::format("GPU {} is slowed down: {}", i, reasons),
                      "its clock, and the times with it, change while something is measured",
                      "cool it, or raise its power limit (nvidia-smi -q -d PERFORMANCE says more)"});
    }
    if (gpu.ecc_errors > 0) {
      list.push_back({"gpu_ecc", Severity::spoils,
                      fmt::format("GPU {} has had {} memory errors that could not be corrected", i, gpu.ecc_errors),
                      "its results cannot be trusted", "reset or replace it (nvidia-smi -q -d ECC says more)"});
    }
    if (!gpu.processes.empty()) {
      list.push_back({"gpu_shared", Severity::spoils,
                      fmt::format("{} {} on GPU {}: {}", gpu.processes.size(),
                                  gpu.processes.size() == 1 ? "process computes" : "processes compute", i,
                                  fmt::join(gpu.processes, ", ")),
                      "the ranks' kernels wait for theirs",
                      "wait until it is idle, or choose another one "
                      "(CUDA_VISIBLE_DEVICES)"});
    }
  }
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::blocks:
      return "blocks";
    case Severity::spoils:
      return "spoils";
    case Severity::note:
      return "note";
  }
  return "unknown";
}

std::vector<Symptom> findings_of(const MachineCondition& condition) {
  List list;
  for (const auto look : {look_at_what_blocks, look_at_time, look_at_speed, look_at_places, look_at_memory,
                          look_at_references, look_at_gpus_of}) {
    look(condition, list);
  }
  std::ranges::stable_sort(list, {}, &Symptom::severity);
  return list;
}

}  // namespace tutti::harness::doctor
