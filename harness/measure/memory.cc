// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/memory.h"

#include <algorithm>
#include <limits>
#include <map>

#include "harness/backends/twin.h"
#include "harness/cases/compositions.h"
#include "harness/measure/limit.h"
#include "harness/measure/rotation.h"
#include "harness/measure/variant.h"

namespace tutti::harness::measure {
namespace {

constexpr double kMiB = 1U << 20U;
constexpr double kGuards = 16 << 10;       ///< of a buffer, with what its alignment takes
constexpr double kHeapGuards = 64 << 10;   ///< the same in a heap
constexpr double kPageTables = 1.0 / 512;  ///< of what a process maps: 8 bytes for each page
// What is left free: for the kernel, and for others of the control group.
constexpr double kLeastFree = 16 * kMiB;
constexpr double kFreeShare = 1.0 / 32;

/// Buffers of one rank, as Variant allocates them, and the copies that verification makes of them.
struct RankNeed {
  double buffers = 0;
  double copies = 0;
};
RankNeed rank_need(const Case& one, const Operation& operation, int rank) {
  const Problem problem = one.problem();
  const auto bytes = [&](Count elements) {
    return static_cast<double>(elements) * static_cast<double>(size_of(one.dtype));
  };
  const double input = bytes(operation.input_elements(rank));
  const double output = bytes(operation.output_elements(rank));
  const bool has_output = output_blocks(problem, rank) > 0;
  if (one.is_in_place) return {.buffers = std::max(input, output), .copies = input > output ? input : 0};
  const double spare = has_output ? output : bytes(one.count);
  const bool has_gaps = one.counts.pattern == Pattern::random;
  return {.buffers = input + spare, .copies = has_output && !has_gaps ? 0 : spare};
}

/// What a reference may allocate in a call, of all ranks: Open MPI's reductions half a buffer on four ranks, a whole
/// one on two.
double reference_need(const Case& one) {
  const bool is_reference = backend_of(one.backend) != kOwnBackend && !is_limit(one.backend);
  return is_reference && is_reducing(one.collective) ? static_cast<double>(one.bytes) * one.ranks_of_call() : 0;
}

}  // namespace

MemoryNeed memory_need(const std::vector<Case>& cell, CacheState cache) {
  MemoryNeed need;
  double aside = 0;             // one variant at a time is called or verified
  std::map<int, double> heaps;  // by group of a contention: a rank is in one
  for (const Case& one : cell) {
    if (!has_data(one.collective) || one.among.is_together) continue;  // together, the buffers are those of alone
    const int ranks = one.ranks_of_call();
    const Rotation rotation = rotation_of(one, cache);
    const Operation operation = operation_of(one, 0);
    double buffers = 0, most = 0, copies = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankNeed of_rank = rank_need(one, operation, rank);
      buffers += of_rank.buffers;
      most = std::max(most, of_rank.buffers);
      copies += of_rank.copies;
    }
    const int number = rotation.sets * (one.is_in_place ? 1 : 2);
    if (one.buffers == Buffers::shared) {
      need.shared += buffers * rotation.sets + kHeapGuards * number * ranks;
      heaps[one.among.group] += most * rotation.sets + kHeapGuards * number;
    } else {
      need.own += buffers * rotation.sets + kGuards * number * ranks;
    }
    if (is_composition(one.backend)) need.own += static_cast<double>(one.bytes) * ranks;  // between its calls
    if (&one == &cell.front()) need.own += static_cast<double>(rotation.filler_bytes) * one.ranks;
    aside = std::max({aside, copies, reference_need(one)});
  }
  for (const auto& [_, heap] : heaps) need.heap = std::max(need.heap, heap);
  const bool maps_all = !cell.empty() && cell.front().ranks_as->is_process;
  need.aside = aside + kPageTables * (need.own + need.shared * (maps_all ? cell.front().ranks : 1));
  return need;
}

double usable(const MemoryLeft& left) {
  const auto bytes = static_cast<double>(left.bytes);
  return bytes - std::max(kLeastFree, kFreeShare * bytes);
}

Status fits_memory(const MemoryNeed& need, const MemoryRoom& room) {
  if (need.sum() < kLeastNeedChecked) return {};
  const bool has_heap = room.heap_bytes && need.heap <= static_cast<double>(*room.heap_bytes);
  const double takes = has_heap ? need.own + need.aside : need.sum();
  const bool is_short_of_heap = room.heap_bytes && !has_heap;
  if (takes <= usable(room.left) && !is_short_of_heap) return {};
  const std::string beside =
      need.aside < kMiB ? "" : fmt::format(", with {} beside them for the calls", memory_text(need.aside));
  return error(Code::unavailable, "the buffers of this cell take {}{}; {}", memory_text(need.own + need.shared), beside,
               room.left.text());
}

std::size_t heap_bytes_for(const std::vector<std::vector<Case>>& cells, CacheState cache, const MemoryLeft& left,
                           double most_for_limits) {
  double heap = 0, most_own = 0;
  std::vector<const std::vector<Case>*> fitting;
  for (const std::vector<Case>& cell : cells) {
    const MemoryNeed need = memory_need(cell, cache);
    if (!fits_memory(need, {.left = left}).is_ok()) continue;  // its ranks skip it
    fitting.push_back(&cell);
    heap = std::max(heap, need.heap);
    most_own = std::max(most_own, need.own + need.aside);
  }
  for (const std::vector<Case>* const cell : fitting) {
    if (most_for_limits <= 0) break;
    const MemoryNeed both = memory_need(with_limit(*cell), cache);
    if (both.heap <= heap || both.shared > most_for_limits) continue;
    if (most_own + both.shared + both.aside > usable(left)) continue;
    heap = both.heap;
  }
  return static_cast<std::size_t>(heap);
}

}  // namespace tutti::harness::measure
