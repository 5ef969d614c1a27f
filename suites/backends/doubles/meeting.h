// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a communicator meet, in one process or in several: a file of shared memory that is named by their
// unique id, and is gone as soon as all have found it. It carries messages: a channel from each rank to each, one for
// collectives and one for sends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::doubles {

inline constexpr int kMostRanks = 8;
inline constexpr int kMostSplits = 64;  ///< of one communicator
inline constexpr std::uint64_t kWindowsAtOnce = 16;
inline constexpr std::uint64_t kChannelBytes = 1 << 16;

enum RankState : int { rank_absent = 0, rank_there = 1, rank_left = 2, rank_aborted = 3 };

/// A FIFO of bytes with one writer and one reader.
struct Channel {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  std::array<std::byte, kChannelBytes> bytes;

  /// Each returns how many bytes it took or gave, 0 where there is no room or nothing.
  std::size_t write(const std::byte* from, std::size_t most);
  std::size_t take(std::byte* to, std::size_t most);
};

/// What the ranks tell each other when their communicator is split.
struct Split {
  std::atomic<int> arrived;
  std::array<std::atomic<int>, kMostRanks> colours, keys;
};

/// The file's content: all zeros at first.
struct Room {
  std::atomic<int> attached;
  std::array<std::atomic<int>, kMostRanks> states, processes, devices;
  std::array<Split, kMostSplits> splits;
  std::array<std::atomic<std::uint64_t>, kMostRanks> windows;  ///< that each rank has asked for
  std::array<std::array<std::atomic<std::uint64_t>, kWindowsAtOnce>, kMostRanks> window_bytes;  ///< of the last ones
  Channel channels[2][kMostRanks][kMostRanks];
};

class Meeting {
 public:
  /// `name`: of a file in /dev/shm, the same for all ranks and for no others.
  Meeting(const std::string& name, int rank, int ranks, int device);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  [[nodiscard]] Room& room() const { return *room_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_complete() const;
  /// What has become of a rank that has not left in good order: it aborted, or its process has ended. Empty: nothing.
  [[nodiscard]] std::string loss_of(int rank) const;
  void leave(RankState state) { room_->states[static_cast<std::size_t>(rank_)] = state; }

 private:
  std::string name_;
  int rank_, ranks_;
  Room* room_ = nullptr;
};

}  // namespace tutti::doubles
