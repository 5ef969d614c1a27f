// SPDX-License-Identifier: Apache-2.0
// Before a segment is allocated its size is held against what the machine and the control group have left. Beyond that,
// allocating would not fail but wake the kernel's out-of-memory killer.
#include "harness/board/segment.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

#include "harness/machine/memory.h"
#include "impl/transports/shared_memory.h"

namespace tutti::harness::board {

Status check_room(const std::string& name, std::size_t bytes) {
  const MemoryLeft left = memory_left();
  if (bytes <= static_cast<std::uint64_t>(left.bytes)) return {};
  return error(Code::resource, "shared memory '{}' needs {} bytes; {} bytes are available: {}", name, bytes, left.bytes,
               left.text());
}

Result<Descriptor> make_segment(const std::string& name, std::size_t bytes) {
  TUTTI_RETURN_IF_ERROR(check_room(name, bytes));
  TUTTI_ASSIGN_OR_RETURN(const int memory, create_memory(name, bytes));
  return Descriptor(memory);
}

Result<Descriptor> make_text_segment(const std::string& name, std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(Descriptor segment, make_segment(name, text.size()));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::pwrite(segment.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno != EINTR) return error(Code::io, "cannot fill '{}': {}", name, std::strerror(errno));
    done += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  return segment;
}

Result<std::string> read_text(int descriptor) {
  struct stat about = {};
  if (::fstat(descriptor, &about) != 0) return error(Code::io, "cannot read a text: {}", std::strerror(errno));
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::pread(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return error(Code::io, "a text of {} bytes ends after {}", text.size(), done);
    done += static_cast<std::size_t>(n);
  }
  return text;
}

Result<Mapping> Mapping::map(int descriptor, std::size_t bytes) {
  Mapping mapping;
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (base == MAP_FAILED) return error(Code::resource, "cannot map {} bytes: {}", bytes, std::strerror(errno));
  mapping.base_ = base;
  mapping.bytes_ = bytes;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

}  // namespace tutti::harness::board
