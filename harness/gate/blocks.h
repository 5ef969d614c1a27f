// SPDX-License-Identifier: Apache-2.0
// From the rows of a block of launches to evidence, and the order of the launches in a block.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/gate/judge.h"
#include "harness/report/record.h"

namespace tutti::harness {

/// Which side a launch is of.
enum class GateSide : std::uint8_t { mine, other };
/// A B B A, and B A A B in every second block.
[[nodiscard]] std::vector<GateSide> order_of_block(int block);

/// What one block gave of one cell.
struct BlockRows {
  std::vector<Row> mine;
  std::vector<Row> other;
};
struct SideNames {
  std::string mine = "this build";
  std::string other;
};
/// Adds a block; nothing where a side has no row. Results that are wrong or missing and another algorithm
/// are noted; a block counts where all its rows are right and of one state of the machine.
void add_block(Evidence& evidence, const BlockRows& rows, const SideNames& names, bool confirms);

}  // namespace tutti::harness
