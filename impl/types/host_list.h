// SPDX-License-Identifier: Apache-2.0
// The one parser of lists of hosts: `--hosts`, hostfiles, and what Slurm writes into its variables. An entry is
//
//   node1                     a host with one slot, which is room for a rank
//   node1:8, me@node1:8       with 8 slots
//   [2001:db8::7]:8           an entry that begins with a bracket is an IPv6 address
//   rack[0-1]node[01-64,70]:8 brackets behind letters hold ranges of numbers: these are 130 hosts with 8 slots each
//
// A range is padded with zeros to the width of its first number, and the last range counts fastest, as Slurm has it. A
// host that is named several times is one host with all the slots. Names are those of host_name.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "impl/types/status.h"

namespace tutti {

inline constexpr int kMostSlots = 4096;               ///< of one host
inline constexpr std::size_t kMostHosts = 65'536;     ///< of one list
inline constexpr std::size_t kMostEntries = 262'144;  ///< of one list, with those that name a host again

struct NamedHost {
  std::string name;  ///< canonical (parse_host_name)
  int slots = 1;     ///< ranks that it has room for

  bool operator==(const NamedHost&) const = default;
};

/// Entries with commas between them. Errors: invalid_argument naming the entry and what is allowed.
[[nodiscard]] Result<std::vector<NamedHost>> parse_hosts(std::string_view text);
/// A hostfile of Slurm, Open MPI or MPICH. A line holds an entry, or several, and then may give the number of slots:
/// `n1`, `n1 2`, `n1:2`, `n1 slots=2 max_slots=4`. The maximum has no effect, since there is one rank for each slot.
/// A comment begins with `#`. A byte order mark and the line ends of Windows are allowed.
/// Errors: invalid_argument naming the line, the text and what is allowed.
[[nodiscard]] Result<std::vector<NamedHost>> parse_hostfile(std::string_view text);
/// The list as parse_hosts reads it back: `a:2,b:1`. Every host has its number of slots.
[[nodiscard]] std::string to_text(const std::vector<NamedHost>& hosts);
[[nodiscard]] int slots_of(const std::vector<NamedHost>& hosts);

/// The nodes of a list of Slurm, each once: `n[1-2],m` are n1, n2 and m. Errors: invalid_argument.
[[nodiscard]] Result<std::vector<std::string>> parse_nodelist(std::string_view text);
/// Slurm's numbers of tasks of each node: `2(x3),1` are 2, 2, 2 and 1. Errors: invalid_argument.
[[nodiscard]] Result<std::vector<int>> parse_tasks_per_node(std::string_view text);

}  // namespace tutti
