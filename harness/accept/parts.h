// SPDX-License-Identifier: Apache-2.0
// What the files for other programs call parts that are no nodes, and which finding they blame on a node.
#pragma once

#include <cstdint>
#include <string>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// What is no node: "link" and "node1, node2".
struct PartNames {
  std::string kind, name;
};
[[nodiscard]] PartNames names_of_part(const AcceptReport& report, const Finding& finding);

/// The finding for which jobs should do without the node; null: there is none.
[[nodiscard]] const Finding* blame_of(const AcceptReport& report, int node);

/// UTC, since what stays in Slurm is read elsewhere.
[[nodiscard]] std::string utc_minute(std::int64_t seconds);

}  // namespace tutti::harness::accept
