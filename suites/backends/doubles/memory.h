// SPDX-License-Identifier: Apache-2.0
// A device's memory without a device: its addresses are mapped without any access, so that whatever follows one from
// the host crashes, as on a GPU. The double's own items work on a second mapping of the same bytes.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace tutti::doubles {

class Arena {
 public:
  static Arena& get();

  /// Null where there is no room left.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Whether it was one of `allocate`.
  [[nodiscard]] bool release(void* memory);
  /// Where the device finds `bytes` bytes from `memory` on; null where not all of them are of one allocation.
  [[nodiscard]] std::byte* at(const void* memory, std::size_t bytes);
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
  std::map<std::size_t, std::size_t> blocks_;  ///< from offset to bytes
};

}  // namespace tutti::doubles

/// As Arena::at, for a library that is given addresses of the device.
extern "C" void* tutti_double_at(const void* memory, std::size_t bytes);
/// Allocations of the device that were not given back.
extern "C" std::size_t tutti_double_blocks();
