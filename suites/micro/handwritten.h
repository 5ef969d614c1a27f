// SPDX-License-Identifier: Apache-2.0
// The yardstick: the fastest all_reduce (float, sum) that we know how to write by hand for exactly two threads that can
// address each other's buffers. No schedule, no plan, no dispatch on dtype or op, no allocation, no deadline,
// everything inlined; both ranks know all addresses beforehand.
//
//   up to 48 B  payload in the flag's line. Two lines per writer, used in turn, so that nobody waits at the end: line
//               e mod 2 is written again in operation e + 2, after the peer was seen in e + 1 and so is done with e.
//   above       two-shot: each rank reduces its half of both inputs and stores it to both outputs, between two flags
//               (inputs may be read; outputs are written), which have a line each.
//
// What was tried and lost (near state, 0.11 us per line round trip; medians in ns): waiting without `pause`, which
// steals the line while the peer writes it (8 B 61 for 33; 4 KiB 132 for 85); four or eight lines in turn and prefetch
// of the next one for writing (8 B 59 to 68, all without pause); one 64-byte store of flag and payload (8 B 60);
// one-shot (4 KiB 91, 256 KiB 3500 for 2750); one-shot through scratch (4 KiB 200); both flags in one line (4 KiB 100).
// On another processor (8 B 36, 4 KiB 127), what made tutti's own exchange faster there: a fence before the first look
// (38; two of them 43 and 4 KiB 140), a pause (40), prefetch of the next line for writing once the peer was heard (36).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::micro {

/// Lines of 64 bytes, this far apart: the prefetcher fetches neighbours (8 B: 44 ns at 128, 35 at 256).
inline constexpr std::size_t kApart = 256;

struct alignas(kApart) HandwrittenLine {
  std::atomic<std::uint64_t> epoch = 0;
  std::array<float, 12> payload = {};
};

/// What the two ranks share. Lines of rank r are written by rank r only.
struct HandwrittenShared {
  struct Lines {
    std::array<HandwrittenLine, 2> small;
    HandwrittenLine arrived;
    HandwrittenLine done;
  };
  std::array<Lines, 2> lines;
  std::array<const float*, 2> inputs = {};
  std::array<float*, 2> outputs = {};
};

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

inline void wait_for(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  while (word.load(std::memory_order_acquire) < value) relax();
}

/// One rank's side. Aligned, because a counter that shares a line with the peer's costs 30 ns per operation.
class alignas(kApart) HandwrittenAllReduce {
 public:
  HandwrittenAllReduce(HandwrittenShared& shared, int rank)
      : shared_(&shared),
        mine_(&shared.lines[static_cast<std::size_t>(rank)]),
        theirs_(&shared.lines[static_cast<std::size_t>(1 - rank)]),
        rank_(static_cast<std::size_t>(rank)) {}

  /// outputs[r][0, count) <- inputs[0][0, count) + inputs[1][0, count) on both ranks.
  void operator()(std::size_t count) {
    ++epoch_;
    if (count <= mine_->small[0].payload.size()) {
      exchange_in_flag_line(count);
    } else {
      two_shot(count);
    }
  }

 private:
  void exchange_in_flag_line(std::size_t count) {
    HandwrittenLine& mine = mine_->small[epoch_ % 2];
    const HandwrittenLine& theirs = theirs_->small[epoch_ % 2];
    const float* input = shared_->inputs[rank_];
    float* output = shared_->outputs[rank_];
    for (std::size_t i = 0; i < count; ++i) mine.payload[i] = input[i];
    mine.epoch.store(epoch_, std::memory_order_release);
    wait_for(theirs.epoch, epoch_);
    for (std::size_t i = 0; i < count; ++i) output[i] = input[i] + theirs.payload[i];
  }

  void two_shot(std::size_t count) {
    mine_->arrived.epoch.store(epoch_, std::memory_order_release);
    wait_for(theirs_->arrived.epoch, epoch_);
    const std::size_t begin = rank_ == 0 ? 0 : count / 2;
    const std::size_t end = rank_ == 0 ? count / 2 : count;
    const float* __restrict a = shared_->inputs[0];
    const float* __restrict b = shared_->inputs[1];
    float* __restrict x = shared_->outputs[0];
    float* __restrict y = shared_->outputs[1];
    for (std::size_t i = begin; i < end; ++i) {
      const float sum = a[i] + b[i];
      x[i] = sum;
      y[i] = sum;
    }
    mine_->done.epoch.store(epoch_, std::memory_order_release);
    wait_for(theirs_->done.epoch, epoch_);
  }

  HandwrittenShared* shared_;
  HandwrittenShared::Lines* mine_;
  HandwrittenShared::Lines* theirs_;
  std::size_t rank_;
  std::uint64_t epoch_ = 0;
};

}  // namespace tutti::micro
