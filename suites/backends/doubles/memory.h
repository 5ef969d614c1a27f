// SPDX-License-Identifier: Apache-2.0
// A device's memory without a device: its addresses are mapped without any access, so that whatever follows one from
// the host crashes, as on a GPU. The double's own items work on a second mapping of the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>

namespace tutti::doubles {

class Arena {
 public:
  static Arena& get();

  /// On GPU `device`. Null where there is no room left.
  [[nodiscard]] void* allocate(std::size_t bytes, int device);
  /// Whether it was one of `allocate`.
  [[nodiscard]] bool release(void* memory);
  /// Where the device finds `bytes` bytes from `memory` on; null where not all of them are of one allocation.
  [[nodiscard]] std::byte* at(const void* memory, std::size_t bytes);
  /// The GPU that an address is of; -1: of none.
  [[nodiscard]] int device_of(const void* memory);
  /// By which another process opens an allocation: its memory is a file, which others reach through /proc.
  using Handle = std::array<char, 64>;
  /// Whether it was one of `allocate`, which other processes may have opened from then on.
  [[nodiscard]] bool offer(void* memory, Handle& handle);
  [[nodiscard]] bool is_offered(const void* memory);
  /// An allocation of another process; null where there is none. It counts as one of its GPU.
  [[nodiscard]] void* open(const Handle& handle);
  /// Whether it was one of `open`.
  [[nodiscard]] bool close(void* memory);
  /// From here on the host can touch all of it: what follows addresses that lie there in other memory of the device
  /// would crash else.
  void open_to_host();
  [[nodiscard]] bool holds(const void* memory) const { return memory >= there_ && memory < there_ + kBytes; }
  [[nodiscard]] std::size_t blocks();
  [[nodiscard]] std::size_t bytes_left();

  static constexpr std::size_t kBytes = std::size_t{1} << 30;

 private:
  Arena();

  std::mutex mutex_;
  int file_ = -1;
  std::byte* there_ = nullptr;
  std::byte* here_ = nullptr;
  struct Block {
    std::size_t bytes;
    int device;
    bool is_offered = false;
  };
  [[nodiscard]] const Block* block_at(const void* memory, std::size_t bytes);

  [[nodiscard]] const Block* opened_at(const void* memory, std::size_t bytes);

  std::map<std::size_t, Block> blocks_;       ///< by offset
  std::map<const std::byte*, Block> opened_;  ///< of other processes
};

}  // namespace tutti::doubles

/// As Arena::at, for a library that is given addresses of the device.
extern "C" void* tutti_double_at(const void* memory, std::size_t bytes);
/// As Arena::device_of and Arena::open_to_host.
extern "C" int tutti_double_device_of(const void* memory);
extern "C" void tutti_double_open_to_host();
/// Whether launches on a GPU may address the memory of another one.
extern "C" bool tutti_double_reaches(int device, int other);
/// Allocations of the device that were not given back.
extern "C" std::size_t tutti_double_blocks();
