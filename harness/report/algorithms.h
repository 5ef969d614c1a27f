// SPDX-License-Identifier: Apache-2.0
// The table of algorithms for the docs, generated from the registry and the cost formulas.
#pragma once

#include <string>

#include "harness/floors.h"

namespace tutti::harness::report {

/// Markdown: what each algorithm is, its cost on 8 ranks (steps and messages of rank 0, units that it moves to or from
/// other ranks, depth), where it comes from, and its picture. The committed impl/algorithms/README.md ends with this text; a test
/// compares them.
[[nodiscard]] std::string algorithms_markdown();

}  // namespace tutti::harness::report
