// SPDX-License-Identifier: Apache-2.0
// Layout of the board: the abort line and beside it what the job stood still, then statuses, then sync and probe lines,
// then the pages. Each kind has an entry for every runner of the job, then one for every runner as a member of its
// group. Sync and probe lines lie at twice a cache line's distance. Neighbouring lines are fetched in pairs, and one
// rank's writes must not disturb another's.
#include "harness/board/board.h"

#include "harness/board/segment.h"
#include "harness/machine/clock.h"

namespace tutti::harness::board {
namespace {

constexpr std::size_t kStride = 128;
static_assert(sizeof(RankStatus) <= kStride && sizeof(SyncLine) <= kStride && sizeof(RunnerPage) == kPageBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::size_t kStoodOffset = kStride / 2;
constexpr std::size_t kStatusOffset = kStride;  // behind the abort line
std::size_t sync_offset(int ranks) { return kStatusOffset + static_cast<std::size_t>(ranks) * kStride; }
std::size_t page_offset(int ranks) {
  constexpr std::size_t kLines = 4;  // of a rank: sync and probe, for the job and for its group
  const std::size_t end = sync_offset(ranks) + kLines * static_cast<std::size_t>(ranks) * kStride;
  return (end + kPageBytes - 1) / kPageBytes * kPageBytes;
}

template <class T>
T& at(std::byte* base, std::size_t offset) {
  return *reinterpret_cast<T*>(base + offset);
}

}  // namespace

std::size_t Board::bytes(int ranks) { return page_offset(ranks) + 2 * static_cast<std::size_t>(ranks) * kPageBytes; }

// Zeroed memory is what every member's type starts as, so no process has to construct, and ranks may come in any
// order.
Board::Board(void* base, int ranks) : base_(static_cast<std::byte*>(base)), ranks_(ranks) {}

Board Board::of_group(std::vector<int> places) const {
  Board group = *this;
  group.places_ = std::make_shared<const std::vector<int>>(std::move(places));
  return group;
}

RankStatus& Board::status(int rank) const {
  return at<RankStatus>(base_, kStatusOffset + static_cast<std::size_t>(rank) * kStride);
}
SyncLine& Board::sync(int rank) const {
  return at<SyncLine>(base_, sync_offset(ranks_) + static_cast<std::size_t>(line_of(rank)) * kStride);
}
SyncLine& Board::probe(int rank) const {
  const int line = 2 * ranks_ + line_of(rank);
  return at<SyncLine>(base_, sync_offset(ranks_) + static_cast<std::size_t>(line) * kStride);
}
RunnerPage& Board::page(int rank) const {
  return at<RunnerPage>(base_, page_offset(ranks_) + static_cast<std::size_t>(line_of(rank)) * kPageBytes);
}
std::atomic<std::uint32_t>& Board::abort_flag() const { return at<std::atomic<std::uint32_t>>(base_, 0); }
std::atomic<std::int64_t>& Board::stood_ns() const { return at<std::atomic<std::int64_t>>(base_, kStoodOffset); }

void announce(RankStatus& status, Activity activity, std::uint32_t case_index) {
  status.case_index.store(case_index, std::memory_order_relaxed);
  status.activity.store(static_cast<std::uint32_t>(activity), std::memory_order_relaxed);
  status.awaited.store(0, std::memory_order_relaxed);
  status.operation.store(status.operation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  status.pending_since_ns.store(monotonic_ns(), std::memory_order_release);
  status.granted_ns.store(0, std::memory_order_release);  // last: see announced_on
}

void await(RankStatus& status, int runner) { status.awaited.store(runner + 1, std::memory_order_relaxed); }

void renew(RankStatus& status, std::chrono::nanoseconds granted) {
  if (status.pending_since_ns.load(std::memory_order_relaxed) == 0) return;
  status.pending_since_ns.store(monotonic_ns(), std::memory_order_release);
  status.granted_ns.store(granted.count(), std::memory_order_release);
}

Announced announced_on(const RankStatus& status) {
  const std::int64_t granted_ns = status.granted_ns.load(std::memory_order_acquire);
  return {.since_ns = status.pending_since_ns.load(std::memory_order_acquire), .granted_ns = granted_ns};
}

void settle(RankStatus& status) {
  status.pending_since_ns.store(0, std::memory_order_release);
  status.activity.store(static_cast<std::uint32_t>(Activity::idle), std::memory_order_relaxed);
}

}  // namespace tutti::harness::board
