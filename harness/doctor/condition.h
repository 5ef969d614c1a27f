// SPDX-License-Identifier: Apache-2.0
// The condition of a machine, as far as it bears on measurements: what `tutti doctor` looks at. Reading is apart from
// judging (findings.h), and both from telling (diagnosis.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/gpu.h"
#include "harness/machine/machine.h"
#include "harness/machine/tree.h"

namespace tutti::harness::doctor {

/// A reference that was found and cannot be started here.
struct UnusableBackend {
  std::string name;
  std::string why;
};

/// What no file says; asked by probe_system, set by tests.
struct Probes {
  std::string memory_refusal;              ///< why shared memory of no name (memfd) cannot be had; empty: it can
  std::string socket_refusal;              ///< why a local socket cannot be had
  std::optional<std::int64_t> shm_bytes;   ///< of /dev/shm
  std::vector<std::string> programs_path;  ///< the folders of PATH
  std::vector<std::string> backends;       ///< references that were found, and can be started
  std::vector<UnusableBackend> unusable;   ///< those that cannot
  GpusSeen gpus;                           ///< or why none can be asked
  std::string why_no_cuda;                 ///< empty: it has GPUs
  std::string torch;                       ///< for which PyTorch the process group is built, or why for none
};
[[nodiscard]] Probes probe_system();

struct MachineCondition {
  Probes probes;
  // The processor. Empty or 0 where the machine does not tell.
  std::string cpu_model;
  std::vector<int> online;
  std::vector<int> allowed;
  int sockets = 0;
  int physical_cores = 0;                        ///< online
  std::vector<std::vector<int>> numa;            ///< [node]: its cores
  std::vector<std::vector<int>> allowed_shared;  ///< allowed cores that are threads of one physical core, two or more
  std::vector<Cache> caches;                     ///< of the first allowed core, without instructions
  std::string governor;
  std::optional<bool> has_turbo;
  bool is_virtual = false;
  std::string hypervisor;  ///< its name; empty: unknown
  bool is_container = false;
  // Time.
  std::string clock_source;
  std::optional<double> quota_cores;  ///< the cgroup's; empty: none
  double load = 0;                    ///< of the last minute
  double steal_fraction = 0;          ///< of all time since the start, that the hypervisor gave to others
  // Memory.
  std::int64_t memory_bytes = 0;
  std::int64_t available_bytes = 0;
  std::optional<std::int64_t> memory_limit;  ///< the cgroup's
  std::string huge_pages;                    ///< always, madvise, never
  std::int64_t reserved_huge_pages = 0;
  // What references need.
  std::optional<int> ptrace_scope;
  bool may_ptrace = false;  ///< has the capability, so that the scope does not matter
  std::string mpirun;       ///< its path; empty: none
  std::vector<std::string> gpus;
  std::string kernel;
};

[[nodiscard]] MachineCondition read_condition(const Tree& tree, Probes probes);

}  // namespace tutti::harness::doctor
