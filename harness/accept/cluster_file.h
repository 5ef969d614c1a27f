// SPDX-License-Identifier: Apache-2.0
// A pretended cluster as a user writes it:
//
//   nodes = 64
//   leaf = 16                  # nodes per leaf switch
//   tells_leaves = true        # false: an acceptance is not told of them
//   noise = "typical"          # quiet, typical, heavy, states
//   seed = 7
//   older = "25%"              # of the nodes, the last ones, are of an older generation,
//   older_by = "20%"           # and so much slower
//   rails = ["ib0", "ib1"]     # interfaces that each node has; without it there is one
//   library = "gloo"           # plays in place of tutti; without it tutti plays
//
//   [[fault]]
//   what = "nic-out"           # see Trouble; "uplink" and "uplink-dir" have a leaf, "link", "hung", ... have two nodes
//   node = "node17"            # or nodes = ["node22", "node40"], or leaf = "C", or leaves = ["A", "B"]
//   share = "31%"              # of the speed
//   rail = "ib1"               # on which alone it is; without it on all
//   of_library = true          # what tutti's own transport plays does not have it
#pragma once

#include <string_view>

#include "harness/accept/pretend.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::accept {

inline constexpr int kMostNodes = 4096;

/// Errors: invalid_argument that names the line, what is wrong there, and the nearest right.
[[nodiscard]] Result<PretendedCluster> cluster_from_toml(std::string_view text);

}  // namespace tutti::harness::accept
