// SPDX-License-Identifier: Apache-2.0
// The memory of cells: what a cell needs (MemoryNeed), held against what there is (MemoryRoom) before any of it is
// touched. A rank that touches more than its control group has left is killed, and what it has measured is lost.
//
// Shared buffers of processes lie in heaps. The launcher makes the heaps before the first cell, for the largest cell
// that fits. All else is allocated when its cell begins, and is held against what is left then.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "harness/cases/case.h"
#include "harness/cases/conditions.h"
#include "harness/machine/memory.h"
#include "impl/types/status.h"

namespace tutti::harness::measure {

/// Bytes of all ranks of a cell together.
struct MemoryNeed {
  double own = 0;     ///< private buffers with their guards, and what rotating calls read
  double shared = 0;  ///< buffers that every rank can address
  double heap = 0;    ///< of these, the most that one rank has
  double aside = 0;   ///< page tables, copies for verification, and what references allocate in a call

  [[nodiscard]] double sum() const { return own + shared + aside; }
};
[[nodiscard]] MemoryNeed memory_need(const std::vector<Case>& cell, CacheState cache = CacheState::hot);

/// What a cell has to fit into.
struct MemoryRoom {
  MemoryLeft left;
  std::optional<std::size_t> heap_bytes = {};  ///< of each rank, there already; empty: shared buffers are of `left` too
};
/// The part of `left` that is for the buffers: the rest is for all that nobody can foretell.
[[nodiscard]] double usable(const MemoryLeft& left);
/// Errors: unavailable with the numbers.
[[nodiscard]] Status fits_memory(const MemoryNeed& need, const MemoryRoom& room);
/// A need below it is not held against anything: ranks take as much themselves.
inline constexpr double kLeastNeedChecked = 4 << 20;

/// The heap of each rank: for the shared buffers of the largest cell that fits `left`, and for limits too where all
/// heaps together have at most so many bytes then and leave room for the private buffers of all cells. 0 where nothing
/// is shared.
[[nodiscard]] std::size_t heap_bytes_for(const std::vector<std::vector<Case>>& cells, CacheState cache,
                                         const MemoryLeft& left, double most_for_limits = 0);
}  // namespace tutti::harness::measure
