// SPDX-License-Identifier: Apache-2.0
// The report of an acceptance as lines for people. The first line is the verdict.
#pragma once

#include <string>

#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// A line per node up to 16 nodes; above it a line per finding, and one per leaf. Each line of text begins with "# ".
[[nodiscard]] std::string accept_table(const AcceptReport& report);

}  // namespace tutti::harness::accept
