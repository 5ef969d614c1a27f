// SPDX-License-Identifier: Apache-2.0
// A device's memory without a device: its addresses are mapped without any access, so that whatever follows one from
// the host crashes, as on a GPU. Its own operations work on a second mapping of the same bytes.
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/verify/check.h"
#include "harness/verify/memory.h"

namespace tutti::harness::verify {

class DeviceMemory : public Memory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] MemoryKind kind() const override { return MemoryKind::cuda; }

  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override {
    const int file = ::memfd_create("device", MFD_CLOEXEC);
    const bool is_long = file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
    void* const there = is_long ? ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0) : MAP_FAILED;
    void* const here = is_long ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (there == MAP_FAILED || here == MAP_FAILED) return error(Code::resource, "no device memory of {} bytes", bytes);
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<std::byte*>(there)] = {.here = static_cast<std::byte*>(here), .bytes = bytes};
    return there;
  }
  void release(void* pointer) override {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(static_cast<std::byte*>(pointer));
    ::munmap(pointer, block->second.bytes);
    ::munmap(block->second.here, block->second.bytes);
    blocks_.erase(block);
  }
  void write(std::byte* there, std::span<const std::byte> here) override {
    if (!here.empty()) std::memcpy(at(there), here.data(), here.size());
  }
  void read(std::span<std::byte> here, const std::byte* there) const override {
    if (!here.empty()) std::memcpy(here.data(), at(there), here.size());
  }
  void flush(std::span<const std::byte> /*there*/) const override {}

  /// Where the device itself finds the byte `there`: what a kernel does to it is done here.
  [[nodiscard]] std::byte* at(const void* there) const {
    const std::lock_guard lock(mutex_);
    const auto* const byte = static_cast<const std::byte*>(there);
    auto block = blocks_.upper_bound(const_cast<std::byte*>(byte));
    --block;
    return block->second.here + (byte - block->first);
  }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  struct Block {
    std::byte* here;
    std::size_t bytes;
  };
  mutable std::mutex mutex_;
  std::map<std::byte*, Block> blocks_;
};

}  // namespace tutti::harness::verify
