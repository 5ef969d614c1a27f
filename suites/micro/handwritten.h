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
// What was tried and is slower (figures: results/2026-11-comments):
// - waiting without `pause`, which steals the line while the peer writes it
// - four or eight lines in turn, and prefetch of the next one for writing
// - one 64-byte store of flag and payload
// - one-shot, and one-shot through scratch, from 4 KiB on
// - both flags in one line
// - what made tutti's own exchange faster on another processor: fences before the first look, a pause, prefetch of the
//   next line for writing once the peer was heard
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::micro {

/// Lines of 64 bytes, this far apart: the prefetcher fetches neighbours.
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

/// One rank's side. Aligned, because a counter that shares a line with the peer's costs a transfer per operation.
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
