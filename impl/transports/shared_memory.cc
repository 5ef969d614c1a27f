// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/shared_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace tutti {
namespace {

/// Memory that can be had without swapping; no limit where the system does not say.
std::size_t available_bytes() {
  std::size_t kilobytes = 0;
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return std::numeric_limits<std::size_t>::max();
  std::array<char, 128> line{};
  while (kilobytes == 0 && std::fgets(line.data(), line.size(), file) != nullptr) {
    if (std::sscanf(line.data(), "MemAvailable: %zu kB", &kilobytes) != 1) kilobytes = 0;
  }
  std::fclose(file);
  return kilobytes > 0 ? kilobytes * 1024 : std::numeric_limits<std::size_t>::max();
}

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;
#endif

/// Since Linux 5.14; emulated kernels may not know it.
bool can_populate() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool can = madvise(memory, page, kPopulateWrite) == 0;
  munmap(memory, page);
  return can;
}

Result<int> create(const std::string& name, std::size_t bytes, std::size_t at_once) {
  // The system would allocate page by page and kill somebody when there are no more.
  if (const std::size_t available = available_bytes(); at_once > available) {
    return error(Code::resource, "cannot allocate {} bytes of shared memory '{}': {} are available", at_once, name,
                 available);
  }
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return error(Code::resource, "cannot create shared memory '{}': memfd_create: {}", name, std::strerror(errno));
  int failure = 0;
  do {
    failure = at_once == 0 ? 0 : posix_fallocate(fd, 0, static_cast<off_t>(at_once));
  } while (failure == EINTR);
  Status status;
  if (failure != 0) {
    status = error(Code::resource, "cannot allocate {} bytes of shared memory '{}': {}", at_once, name,
                   std::strerror(failure));
  } else if (at_once < bytes && ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    status = error(Code::resource, "cannot make shared memory '{}' of {} bytes: {}", name, bytes, std::strerror(errno));
  } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    status = error(Code::io, "cannot seal shared memory '{}': {}", name, std::strerror(errno));
  }
  if (status.is_ok()) return fd;
  close(fd);
  return status;
}

/// Whole pages, joined where they touch.
std::vector<MappedPart> pages_of(std::span<const MappedPart> extents) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::vector<MappedPart> pages;
  for (const MappedPart& one : extents) {
    if (one.bytes == 0) continue;
    std::byte* const begin = one.begin - reinterpret_cast<std::uintptr_t>(one.begin) % page;
    const std::size_t bytes = (static_cast<std::size_t>(one.begin - begin) + one.bytes + page - 1) / page * page;
    MappedPart* const last = pages.empty() ? nullptr : &pages.back();
    if (last != nullptr && begin >= last->begin && begin <= last->begin + last->bytes) {
      last->bytes = std::max(last->bytes, static_cast<std::size_t>(begin - last->begin) + bytes);
    } else {
      pages.push_back({.begin = begin, .bytes = bytes});
    }
  }
  return pages;
}

}  // namespace

Result<int> create_memory(const std::string& name, std::size_t bytes) { return create(name, bytes, bytes); }

Result<int> create_growing_memory(const std::string& name, std::size_t bytes, std::size_t at_once) {
  return create(name, bytes, can_populate() ? std::min(at_once, bytes) : bytes);
}

Status allocate_pages(std::span<const MappedPart> extents) {
  const std::vector<MappedPart> pages = pages_of(extents);
  std::size_t bytes = 0;
  for (const MappedPart& one : pages) bytes += one.bytes;
  if (bytes == 0) return {};
  const std::size_t available = available_bytes();
  const auto lacks = [&](const char* why) {
    return error(Code::resource,
                 "no room for {} bytes more of shared memory ({}); {} are available: end other programs, or have fewer "
                 "ranks or groups",
                 bytes, why, available);
  };
  if (bytes > available) return lacks("too little memory");
  for (const MappedPart& one : pages) {
    while (madvise(one.begin, one.bytes, kPopulateWrite) != 0) {
      if (errno != EINTR && errno != EAGAIN) return lacks(std::strerror(errno));
    }
  }
  return {};
}

}  // namespace tutti
