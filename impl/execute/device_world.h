// SPDX-License-Identifier: Apache-2.0
// The memory of ranks that are thread blocks, as plain words with one layout for host and device.
//
// A rank lies on one device. It has a slab there, with a part for each lane:
//
//   | scratch per generation | channels to this rank, by sender | slices given back, by receiver | ends | unpacked |
//
// `ends` are words that this rank alone reads and writes; `unpacked` is what it has heard by packets, by sender. Each
// device has a board, with a part for each rank and lane: what that rank has told the ranks of this device.
//
//   | lines, one per generation | completion | packets per generation |
//
// A line holds the flag, the hash of the plan's key and 48 bytes more, as on the CPU (impl/execute/README.md). Packets
// are words that hold data and a flag at once (packets.h).
//
// Whoever waits looks at memory of its own device: at its board, or in its slab. A look at another device's takes as
// long as a message from there. So who tells something stores it on every device where somebody hears it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/schedule/plan.h"
#include "impl/types/host_device.h"

namespace tutti {

/// Lines of L2 on GPUs, and more than one of any CPU.
inline constexpr std::uint64_t kDeviceLine = 128;

struct DeviceLine {
  static constexpr std::size_t kWords = 6;
  std::uint64_t flag;
  std::uint64_t hash;
  std::byte payload[8 * kWords];  ///< scratch, or where the rank's input and output are
  std::byte unused[kDeviceLine - 64];
};
static_assert(sizeof(DeviceLine) == kDeviceLine);

/// The head of a slot; a last slice of at most kInline bytes travels in it.
struct DeviceSlot {
  static constexpr std::int64_t kInline = 40;
  std::uint64_t message;  ///< number of the slice that the slot holds, from 1
  std::uint64_t bytes;    ///< what is left of the message, this slice included
  std::uint64_t hash;
  std::byte payload[kInline];
};
static_assert(sizeof(DeviceSlot) == 64);

/// What a lane of a rank keeps from one operation to the next. After it lie three words for each peer: slices sent to
/// it, slices received from it, and how many of the sent ones it was last seen to have released.
struct LaneState {
  std::uint64_t number;      ///< of the lane's last operation
  std::uint64_t free_until;  ///< the last operation whose generation is known to be free
  std::uint64_t launches;    ///< that the lane has been through, transfers apart
};

/// Why the ranks stopped. The first that fails writes it.
struct DeviceFailure {
  enum Kind : std::uint64_t { none, phase, data, room, generation, other_call, other_length, left };
  std::uint64_t taken;  ///< 0, then 1: one rank writes the rest
  std::uint64_t kind;
  std::uint64_t rank;
  std::uint64_t peer;
  std::uint64_t lane;
  std::uint64_t launch;  ///< counted from 1, those of a graph too; of a transfer its DeviceWork::transfer
  std::uint64_t is_transfer;
  std::uint64_t operation;  ///< of the launch, from 0
  std::uint64_t segment;
  std::uint64_t step;
  std::uint64_t wanted;  ///< phase, slice or bytes
  std::uint64_t found;
};

/// What teams read while they wait, in the abort word.
enum DeviceStop : std::uint64_t {
  keep_going,
  stop_now,       ///< somebody has failed
  stop_and_tell,  ///< the host has waited for too long: the first team that waits fails, and so says for what
};

/// Devices of a world: each thread of a team notes in a word which of them it has told.
inline constexpr int kMostDevices = 64;

/// Which of `devices` has rank `rank`: ranks in ranges of the same length, or one more.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr int device_dealt(int rank, int ranks, int devices) {
  return static_cast<int>(static_cast<std::int64_t>(rank) * devices / ranks);
}

/// What the machines of all ranks share. Each device has its own.
struct DeviceWorld {
  int ranks = 1;
  int lanes = 1;
  int generations = 4;                  ///< K: a power of two
  int slots = 8;                        ///< of a channel
  std::uint64_t scratch_bytes = 0;      ///< of a rank, lane and generation; a multiple of kDeviceLine
  std::uint64_t slot_bytes = 0;         ///< a multiple of 64
  std::uint64_t packet_bytes = 0;       ///< that a rank tells at most by packets; a multiple of kDeviceLine
  int devices = 1;                      ///< at most kMostDevices
  int here = 0;                         ///< the device that reads this
  const int* device_of = nullptr;       ///< [rank]; nullptr: there is one device
  std::byte** slabs = nullptr;          ///< [rank], as addressed from here
  std::byte** boards = nullptr;         ///< [device], as addressed from here
  std::uint64_t* abort_word = nullptr;  ///< a DeviceStop
  DeviceFailure* failure = nullptr;

  // Of a slab.
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t channels_at() const {
    return static_cast<std::uint64_t>(generations) * scratch_bytes;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t slot_stride() const { return sizeof(DeviceSlot) + slot_bytes; }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t channel_bytes() const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(slots) * slot_stride();
    return (bytes + kDeviceLine - 1) / kDeviceLine * kDeviceLine;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t released_at() const {
    return channels_at() + static_cast<std::uint64_t>(ranks) * channel_bytes();
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t ends_at() const {
    return released_at() + static_cast<std::uint64_t>(ranks) * kDeviceLine;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t unpacked_at() const {
    const std::uint64_t words = sizeof(LaneState) + 3 * sizeof(std::uint64_t) * static_cast<std::uint64_t>(ranks);
    return ends_at() + (words + kDeviceLine - 1) / kDeviceLine * kDeviceLine;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t lane_bytes() const {
    return unpacked_at() + static_cast<std::uint64_t>(ranks) * packet_bytes;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t slab_bytes() const {
    return static_cast<std::uint64_t>(lanes) * lane_bytes();
  }
  // Of a board.
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t packets_at() const {
    return static_cast<std::uint64_t>(generations) * sizeof(DeviceLine) + kDeviceLine;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t told_bytes() const {
    return packets_at() + static_cast<std::uint64_t>(generations) * 2 * packet_bytes;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t board_bytes() const {
    return static_cast<std::uint64_t>(ranks) * static_cast<std::uint64_t>(lanes) * told_bytes();
  }

  [[nodiscard]] TUTTI_HOST_DEVICE int device_of_rank(int rank) const { return devices == 1 ? 0 : device_of[rank]; }
  [[nodiscard]] TUTTI_HOST_DEVICE bool is_afar(int rank) const { return device_of_rank(rank) != here; }

  /// What `rank` has told `device`.
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* told(int device, int rank, int lane) const {
    const auto place =
        static_cast<std::uint64_t>(rank) * static_cast<std::uint64_t>(lanes) + static_cast<std::uint64_t>(lane);
    return boards[device] + place * told_bytes();
  }
  [[nodiscard]] TUTTI_HOST_DEVICE DeviceLine& line(int device, int rank, int lane, std::uint64_t generation) const {
    return reinterpret_cast<DeviceLine*>(told(device, rank, lane))[generation];
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t* completion(int device, int rank, int lane) const {
    return &line(device, rank, lane, static_cast<std::uint64_t>(generations)).flag;  // behind the lines
  }

  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t* packets(int device, int rank, int lane,
                                                         std::uint64_t generation) const {
    return reinterpret_cast<std::uint64_t*>(told(device, rank, lane) + packets_at() + generation * 2 * packet_bytes);
  }

  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* part(int rank, int lane) const {
    return slabs[rank] + static_cast<std::uint64_t>(lane) * lane_bytes();
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* scratch(int rank, int lane, std::uint64_t generation) const {
    return part(rank, lane) + generation * scratch_bytes;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* channel(int from, int to, int lane) const {
    return part(to, lane) + channels_at() + static_cast<std::uint64_t>(from) * channel_bytes();
  }
  /// How many slices `to` has given back of those that `from` sent it; in the sender's slab.
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t* released(int from, int to, int lane) const {
    return reinterpret_cast<std::uint64_t*>(part(from, lane) + released_at() +
                                            static_cast<std::uint64_t>(to) * kDeviceLine);
  }
  [[nodiscard]] TUTTI_HOST_DEVICE LaneState& state(int rank, int lane) const {
    return *reinterpret_cast<LaneState*>(part(rank, lane) + ends_at());
  }
  /// Where `rank` puts what `from` has told it by packets.
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* unpacked(int rank, int lane, int from) const {
    return part(rank, lane) + unpacked_at() + static_cast<std::uint64_t>(from) * packet_bytes;
  }
};

/// One rank's call, in memory that the device reads. The plans lie there too, as long as a graph may replay the call.
struct DeviceCall {
  PlanView full;
  PlanView tail;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::int64_t segment_bytes = 0;
  std::int64_t full_segments = 0;
  std::int64_t segments = 0;  ///< the full ones and the tail; lane l takes l, l + lanes, ...
  std::uint64_t factor = 0;   ///< of premul_sum: the first bytes are an element
  bool by_packets = false;    ///< the plans of all ranks have one PacketForm (packets.h)
};

/// When a wait inside a kernel ends.
struct DeviceLimits {
  std::uint64_t timeout_ns = 60'000'000'000;
};

}  // namespace tutti
