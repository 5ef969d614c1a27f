// SPDX-License-Identifier: Apache-2.0
// The memory of a world of thread blocks in one piece: the boards of its devices, then the slabs of its ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "impl/execute/device_world.h"

namespace tutti {

class MemoryOfDevices {
 public:
  /// Ranks in ranges, as communicators deal them.
  MemoryOfDevices(int ranks, int devices) {
    for (int rank = 0; rank < ranks; ++rank) device_of_.push_back(device_dealt(rank, ranks, devices));
    boards_.resize(static_cast<std::size_t>(devices));
    slabs_.resize(static_cast<std::size_t>(ranks));
  }

  [[nodiscard]] std::size_t bytes(const DeviceWorld& world) const {
    return boards_.size() * world.board_bytes() + slabs_.size() * world.slab_bytes();
  }
  /// `memory` is zeroed. The world is then that of device 0.
  void place(DeviceWorld& world, std::byte* memory) {
    board_bytes_ = world.board_bytes();
    slab_bytes_ = world.slab_bytes();
    begin_ = memory;
    for (std::byte*& board : boards_) memory = (board = memory) + board_bytes_;
    for (std::byte*& slab : slabs_) memory = (slab = memory) + slab_bytes_;
    world.devices = static_cast<int>(boards_.size());
    world.device_of = device_of_.data();
    world.boards = boards_.data();
    world.slabs = slabs_.data();
    for (int rank = 0; rank < world.ranks; ++rank) {
      for (int lane = 0; lane < world.lanes; ++lane) {
        world.state(rank, lane).free_until = static_cast<std::uint64_t>(world.generations);
      }
    }
  }
  [[nodiscard]] int device_of(int rank) const { return device_of_[static_cast<std::size_t>(rank)]; }
  /// On which device an address lies; nullopt where it is none of a board or a slab.
  [[nodiscard]] std::optional<int> device_at(const void* address) const {
    const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin_);
    const std::size_t slabs = boards_.size() * board_bytes_;
    if (at < slabs) return static_cast<int>(at / board_bytes_);
    const std::size_t rank = (at - slabs) / slab_bytes_;
    return rank < device_of_.size() ? std::optional(device_of_[rank]) : std::nullopt;
  }

 private:
  std::vector<int> device_of_;      // [rank]
  std::vector<std::byte*> boards_;  // [device]
  std::vector<std::byte*> slabs_;   // [rank]
  std::byte* begin_ = nullptr;
  std::size_t board_bytes_ = 0;
  std::size_t slab_bytes_ = 0;
};

}  // namespace tutti
