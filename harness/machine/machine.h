// SPDX-License-Identifier: Apache-2.0
// The machine and the build that a result comes from. It names the host, and no person.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::machine {

struct Cache {
  int level = 0;
  std::string type = {};  ///< "Data", "Instruction" or "Unified"
  std::int64_t bytes = 0;
  std::string shared_cpus = {};  ///< of the first allowed core's cache, as the kernel writes it: "0-1"
};

struct Machine {
  std::string cpu_model = {};
  std::int64_t cores_allowed = 0;  ///< that this process may use
  std::int64_t cores_online = 0;
  std::vector<Cache> caches = {};
  std::int64_t memory_bytes = 0;
  std::string kernel = {};
  std::string hostname = {};
  std::string compiler = {};
  std::string build_type = {};
  std::string commit = {};    ///< "unknown" where the build was not told
  std::string identity = {};  ///< what no other one has; only for fingerprint_of, and never told
};

/// What this process sees. Fields that the machine does not tell are "unknown", 0 or absent, never an error.
[[nodiscard]] Machine describe_machine();

/// What no other running kernel has: containers and namespaces of one machine have the same. Empty where it is hidden.
[[nodiscard]] std::string running_kernel();

/// One JSON object; `hostname` is left out where it is empty.
[[nodiscard]] std::string machine_to_json(const Machine& machine);

/// Eight hexadecimal digits that are the same on the same machine with the same number of allowed cores: times with
/// other digits are not compared. The host cannot be read from it, and the name of a container's is not part of it.
[[nodiscard]] std::string fingerprint_of(const Machine& machine);

/// The same of several machines, in their order: that of one is its own. Requires: there is one.
[[nodiscard]] std::string fingerprint_of(std::span<const std::string> machines);

/// From the text of /proc/cpuinfo; "unknown" where it does not say.
[[nodiscard]] std::string cpu_model_of(std::string_view cpuinfo);
/// Bytes of the kernel's notation "32K", "1024K", "32M"; 0 where it is something else.
[[nodiscard]] std::int64_t cache_bytes_of(std::string_view size);

}  // namespace tutti::harness::machine
