// SPDX-License-Identifier: Apache-2.0
// From the rows of launches to evidence, and the order of the launches in a block. A pair is one launch of each side in
// one state of the machine. A virtual machine finds its cores elsewhere in every other launch, and all times are then
// others. Blocks of four launches, of which those that saw two states are dropped, would leave most cells undecided. By
// pairs, most blocks give one or two.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/gate/judge.h"
#include "harness/record/record.h"

namespace tutti::harness::gate {

enum class GateSide : std::uint8_t { mine, other };
/// A B B A, and B A A B in every second block.
[[nodiscard]] std::vector<GateSide> order_of_block(int block);

/// Whether two launches saw one state of the machine, by the round trip of a cache line; yes where one does not know.
[[nodiscard]] bool saw_one_state(std::optional<double> trip_ns, std::optional<double> other_trip_ns);
/// What tells them of a row: the round trip between its machines, of one machine that of a cache line.
[[nodiscard]] inline std::optional<double> state_of(const Row& row) { return row.net_ns ? row.net_ns : row.line_ns; }

/// What one block gave of one cell.
struct BlockRows {
  std::vector<Row> mine;
  std::vector<Row> other;
};
struct SideNames {
  std::string mine = "this build";
  std::string other;
};
/// What spoils measurements and was seen while these were made.
void note_disturbances(Evidence& evidence, std::span<const Row> rows);

/// Pairs the launches of a block with each other and with those that were left over, the oldest first; nothing where a
/// side has no row. Results that are wrong or missing and another algorithm are noted.
void add_block(Evidence& evidence, const BlockRows& rows, const SideNames& names, bool confirms);

}  // namespace tutti::harness::gate
