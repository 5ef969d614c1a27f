// SPDX-License-Identifier: Apache-2.0
// The board: memory that the launcher and all ranks of a job share. On it each rank announces what it is about to do
// (RankStatus), so that the launcher can tell which rank is late. Hosts, the threads that run ranks, agree on start
// instants (SyncLine) and exchange small records (RunnerPage) through it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

/// One rank's announcement. The rank writes, the launcher reads.
struct alignas(64) RankStatus {
  std::atomic<std::int64_t> pending_since_ns;  ///< CLOCK_MONOTONIC of the announcement; 0: nothing pending
  std::atomic<std::uint64_t> operation;        ///< operations announced so far: the rank furthest behind has the least
  std::atomic<std::uint32_t> case_index;       ///< number of the case in its job
  std::atomic<std::uint32_t> activity;         ///< an Activity
  std::atomic<std::int64_t> granted_ns;        ///< beyond the timeout, from pending_since_ns on
  std::atomic<std::int32_t> awaited;           ///< in an exchange: 1 and the runner whose page is awaited; 0: none is
};
enum class Activity : std::uint32_t { idle, operation, exchange };

/// Before whatever may wait for another rank: counts an operation and starts its deadline. By the rank itself only.
void announce(RankStatus& status, Activity activity, std::uint32_t case_index);
/// In an exchange that is announced: `runner` is the one whose page is awaited. By the rank itself only.
void await(RankStatus& status, int runner);
/// What is pending has got on: its deadline begins anew, and is later by `granted`. Without anything pending nothing
/// changes. By the rank itself only.
void renew(RankStatus& status, std::chrono::nanoseconds granted);
/// After it: nothing is pending any more.
void settle(RankStatus& status);

/// Since when something is pending (0: nothing is), and what is granted to it beyond the timeout.
struct Announced {
  std::int64_t since_ns = 0;
  std::int64_t granted_ns = 0;
};
/// The grant is read first and written last: a new one is never taken for that of an older announcement.
[[nodiscard]] Announced announced_on(const RankStatus& status);

/// One runner's page for exchanges.
struct alignas(64) RunnerPage {
  static constexpr std::size_t kPayload = 4096 - 64;
  std::atomic<std::uint64_t> sequence;  ///< of the last exchange whose payload is complete
  alignas(64) std::byte payload[kPayload];
};

/// Lines for timing. Sync lines say which ranks have arrived and how far each is in barriers. Runner 0's also has the
/// instants of the start announced last and of the one before, by their numbers modulo 2. Probe lines: bounced to and
/// fro to measure a line's round trip.
struct alignas(64) SyncLine {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> round;
  std::atomic<std::int64_t> instants_ns[2];
};

/// A view of a board in mapped memory. Shapes: statuses have one entry per rank, pages and sync lines two: one for all
/// runners of the job, one for the runners of a group (of_group).
class Board {
 public:
  [[nodiscard]] static std::size_t bytes(int ranks);
  /// `base` is zeroed memory of `bytes(ranks)` bytes, 64-byte aligned.
  Board(void* base, int ranks);

  /// The board on which the runners of one group agree while other groups do so among themselves. Runner i of the
  /// group is at `places[i]` of the job. Statuses and the abort flag stay those of the job.
  [[nodiscard]] Board of_group(std::vector<int> places) const;

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] RankStatus& status(int rank) const;
  [[nodiscard]] RunnerPage& page(int rank) const;
  [[nodiscard]] SyncLine& sync(int rank) const;
  [[nodiscard]] SyncLine& probe(int rank) const;
  [[nodiscard]] std::atomic<std::uint32_t>& abort_flag() const;  ///< set by the launcher or a failing rank
  /// For how long the job on this board stood still so far (machine/standstill.h). The process that watches it adds.
  [[nodiscard]] std::atomic<std::int64_t>& stood_ns() const;

 private:
  /// Which of the lines, or pages, of its kind a runner has.
  [[nodiscard]] int line_of(int runner) const {
    return places_ == nullptr ? runner : ranks_ + (*places_)[static_cast<std::size_t>(runner)];
  }

  std::byte* base_;
  int ranks_;
  std::shared_ptr<const std::vector<int>> places_;  ///< of a group's runners; null: of all
};

}  // namespace tutti::harness::board
