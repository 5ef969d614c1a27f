// SPDX-License-Identifier: Apache-2.0
#include "suites/backends/doubles/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace tutti::doubles {
namespace {
constexpr std::size_t kPage = 4096;

/// What a handle holds.
struct Offered {
  int process;
  int file;
  int device;
  std::size_t offset;
  std::size_t bytes;
};
}  // namespace

Arena& Arena::get() {
  static auto& one = *new Arena();  // streams use it until the process ends
  return one;
}

Arena::Arena() : file_(::memfd_create("tutti-device", MFD_CLOEXEC)) {
  if (::ftruncate(file_, static_cast<off_t>(kBytes)) != 0) std::abort();
  void* const there = ::mmap(nullptr, kBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  void* const here = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (there == MAP_FAILED || here == MAP_FAILED) std::abort();
  there_ = static_cast<std::byte*>(there);
  here_ = static_cast<std::byte*>(here);
}

void* Arena::allocate(std::size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  const std::size_t pages = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  std::size_t offset = 0;  // behind each block a page is left free
  for (const auto& [first, block] : blocks_) {
    if (first - offset >= pages + kPage && first > offset) break;
    offset = first + (block.bytes + kPage - 1) / kPage * kPage + kPage;
  }
  if (bytes > kBytes || offset + pages > kBytes) return nullptr;
  blocks_[offset] = {.bytes = std::max<std::size_t>(bytes, 1), .device = device};
  return there_ + offset;
}

bool Arena::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (!holds(memory)) return false;
  const auto block = blocks_.find(static_cast<std::size_t>(static_cast<std::byte*>(memory) - there_));
  if (block == blocks_.end()) return false;
  ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(block->first),
              static_cast<off_t>((block->second.bytes + kPage - 1) / kPage * kPage));
  blocks_.erase(block);
  return true;
}

bool Arena::offer(void* memory, Handle& handle) {
  const std::lock_guard lock(mutex_);
  if (!holds(memory)) return false;
  const auto block = blocks_.find(static_cast<std::size_t>(static_cast<std::byte*>(memory) - there_));
  if (block == blocks_.end()) return false;
  const Offered offered{.process = ::getpid(),
                        .file = file_,
                        .device = block->second.device,
                        .offset = block->first,
                        .bytes = block->second.bytes};
  static_assert(sizeof offered <= sizeof handle);
  std::memcpy(handle.data(), &offered, sizeof offered);
  block->second.is_offered = true;
  return true;
}

bool Arena::is_offered(const void* memory) {
  const std::lock_guard lock(mutex_);
  const Block* const block = block_at(memory, 1);
  return block != nullptr && block->is_offered;
}

void* Arena::open(const Handle& handle) {
  Offered offered{};
  std::memcpy(&offered, handle.data(), sizeof offered);
  const std::string path = "/proc/" + std::to_string(offered.process) + "/fd/" + std::to_string(offered.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const memory = ::mmap(nullptr, offered.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                              static_cast<off_t>(offered.offset));
  ::close(file);
  if (memory == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  opened_[static_cast<std::byte*>(memory)] = {.bytes = offered.bytes, .device = offered.device};
  return memory;
}

bool Arena::close(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto opened = opened_.find(static_cast<std::byte*>(memory));
  if (opened == opened_.end()) return false;
  ::munmap(memory, opened->second.bytes);
  opened_.erase(opened);
  return true;
}

std::byte* Arena::at(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (opened_at(memory, bytes) != nullptr) return static_cast<std::byte*>(const_cast<void*>(memory));
  if (block_at(memory, bytes) == nullptr) return nullptr;
  return here_ + (static_cast<const std::byte*>(memory) - there_);
}

int Arena::device_of(const void* memory) {
  const std::lock_guard lock(mutex_);
  const Block* const opened = opened_at(memory, 1);
  const Block* const block = opened != nullptr ? opened : block_at(memory, 1);
  return block == nullptr ? -1 : block->device;
}

const Arena::Block* Arena::block_at(const void* memory, std::size_t bytes) {
  if (!holds(memory)) return nullptr;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(memory) - there_);
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return nullptr;
  --block;
  return offset + bytes <= block->first + block->second.bytes ? &block->second : nullptr;
}

const Arena::Block* Arena::opened_at(const void* memory, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(memory);
  auto opened = opened_.upper_bound(first);
  if (opened == opened_.begin()) return nullptr;
  --opened;
  return first + bytes <= opened->first + opened->second.bytes ? &opened->second : nullptr;
}

void Arena::open_to_host() {
  if (::mprotect(there_, kBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
}

std::size_t Arena::blocks() {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

std::size_t Arena::bytes_left() {
  const std::lock_guard lock(mutex_);
  std::size_t left = kBytes;
  for (const auto& [first, block] : blocks_) left -= (block.bytes + kPage - 1) / kPage * kPage;
  return left;
}

}  // namespace tutti::doubles
