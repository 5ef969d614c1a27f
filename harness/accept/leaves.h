// SPDX-License-Identifier: Apache-2.0
// Which leaf switch each node hangs on, as an operator says it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

/// A leaf for every `size` nodes in their order; the last one may have fewer. Requires: size >= 1.
[[nodiscard]] std::vector<int> leaves_of_size(int nodes, int size);
/// The leaf switch of a node by Slurm's SLURM_TOPOLOGY_ADDR, such as "s0.s1.node3", with the pattern
/// "switch.switch.node": the whole path to it, "s0.s1". Empty: the address names no switch, or does not fit the
/// pattern.
[[nodiscard]] std::string leaf_from_slurm(std::string_view address, std::string_view pattern);
/// Numbers in the order in which these paths come. Empty: one of them is empty.
[[nodiscard]] std::vector<int> leaves_from_paths(std::span<const std::string> paths);
/// A line per node, `NODE LEAF`, in any order; "#" begins a comment. Leaves are numbered in the order in which the file
/// names them. Errors: invalid_argument that names the line, or a node that has none.
[[nodiscard]] Result<std::vector<int>> leaves_from_file(std::string_view text, std::span<const std::string> names);

}  // namespace tutti::harness::accept
