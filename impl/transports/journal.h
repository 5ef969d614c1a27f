// SPDX-License-Identifier: Apache-2.0
// A rank's journal: what it tells of its calls, for ranks that have waited for too long. It is written off the way of a
// repeated short call. That is when another call than the last one starts, when an operation that took the long way
// ends, and when the rank has waited for some milliseconds. Its reader (impl/communicator/diagnosis.h) may be another
// process, and the rank may be dead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "impl/collective/collective.h"
#include "impl/transports/domain.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti {

/// A value that one thread writes and any may read meanwhile. Zeroed memory tells a zeroed value.
///
/// Ordered by release and acquire alone. A reader that has read a word of a newer value has acquired the odd version
/// before it. So its second look at the version finds another than the first.
template <class Value>
class Told {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % sizeof(std::uint64_t) == 0);
  using Words = std::array<std::uint64_t, sizeof(Value) / sizeof(std::uint64_t)>;
  static constexpr int kTries = 16;

 public:
  void write(const Value& value) {
    Words words;
    std::memcpy(words.data(), &value, sizeof value);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  /// Nothing where it was being written all the time: its writer is busy with it, or died over it.
  [[nodiscard]] std::optional<Value> read() const {
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      Words words;
      for (std::size_t at = 0; at < words.size(); ++at) words[at] = words_[at].load(std::memory_order_acquire);
      if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) continue;
      Value value;
      std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
      return value;
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint64_t> version_;  // odd: being written
  std::array<std::atomic<std::uint64_t>, sizeof(Value) / sizeof(std::uint64_t)> words_;
};

/// A call as it is compared and named. A rank that repeats it writes no other note: it stands for all operations from
/// `first` to the next note.
struct CallNote {
  std::uint64_t first = 0;  ///< number of its first operation
  std::uint64_t hash = 0;   ///< that of its first plan: the same on all ranks that agree
  Count count = 0;          ///< elements per block; unused in a v form
  Count segments = 0;
  std::int64_t segment_bytes = 0;
  std::int32_t root = 0;
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  bool has_shared_buffers = false;
  bool has_placement = false;  ///< all ranks must agree on it
  bool is_in_place = false;
  std::array<char, 30> algorithm{};  ///< zero-terminated; a longer name is cut
};

/// What a rank waits for.
enum class Wait : std::uint8_t { none, phase, data, room, generation, receive, send };

/// Where a rank stands that has waited for a while.
struct Standing {
  std::uint64_t operation = 0;  ///< the oldest that is pending; 0: only a send or a receive is waited for
  std::uint64_t finished = 0;   ///< all operations up to this one are complete
  std::int64_t bytes = 0;       ///< of what is waited for
  std::int64_t done = 0;        ///< of a send or a receive: bytes moved so far
  std::uint64_t before = 0;     ///< sends to the peer, or receives from it, that are to be complete first
  std::int32_t peer = -1;
  std::int32_t step = 0;
  std::int32_t steps = 0;
  std::uint16_t phase = 0;
  Wait wait = Wait::none;
  Dtype dtype = Dtype::f32;  ///< of a send or a receive
  bool is_begun = false;     ///< the peer has taken, or given, some of it
  std::array<std::uint8_t, 3> unused{};
  std::uint32_t tag = 0;  ///< of a send or a receive
};

/// Why the rank has announced that a rank failed: written before it is announced, and never changed (failure.h).
struct FailureText {
  std::uint64_t bytes = 0;
  std::array<char, 760> text{};
};

struct Journal {
  static constexpr std::size_t kNotes = 16;

  /// All operations up to this one are complete; it is not told by a repeated short call.
  alignas(kCacheLine) std::atomic<std::uint64_t> finished;
  std::atomic<std::uint64_t> notes;     ///< how many were written: note i lies in calls[i % kNotes]
  std::atomic<std::uint64_t> has_left;  ///< the communicator is no more
  std::atomic<std::uint64_t> counted;   ///< number of the v call whose bytes of every block follow; 0: being written
  alignas(kCacheLine) Told<Standing> standing;
  alignas(kCacheLine) std::array<Told<CallNote>, kNotes> calls;
  alignas(kCacheLine) FailureText failure;

  [[nodiscard]] std::atomic<std::int64_t>* counts() { return reinterpret_cast<std::atomic<std::int64_t>*>(this + 1); }
  [[nodiscard]] const std::atomic<std::int64_t>* counts() const {
    return reinterpret_cast<const std::atomic<std::int64_t>*>(this + 1);
  }
};

}  // namespace tutti
