// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/shared_memory.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

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

}  // namespace

Result<int> create_memory(const std::string& name, std::size_t bytes) {
  // The system would allocate page by page and kill somebody when there are no more.
  if (const std::size_t available = available_bytes(); bytes > available) {
    return error(Code::resource, "cannot allocate {} bytes of shared memory '{}': {} are available", bytes, name,
                 available);
  }
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return error(Code::resource, "cannot create shared memory '{}': {}", name, std::strerror(errno));
  int failure = 0;
  do {
    failure = bytes == 0 ? 0 : posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (failure == EINTR);
  Status status;
  if (failure != 0) {
    status = error(Code::resource, "cannot allocate {} bytes of shared memory '{}': {}", bytes, name,
                   std::strerror(failure));
  } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    status = error(Code::io, "cannot seal shared memory '{}': {}", name, std::strerror(errno));
  }
  if (status.is_ok()) return fd;
  close(fd);
  return status;
}

}  // namespace tutti
