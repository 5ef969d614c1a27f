// SPDX-License-Identifier: Apache-2.0
// Memory that processes share without a name: a file in memory. It vanishes with its last process. It is allocated
// before anybody touches it, in full or part by part, so that lack of memory is an error with numbers and not a SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "impl/types/status.h"

namespace tutti {

/// A memfd of `bytes` zeroed bytes, allocated in full, whose size cannot change; closed on exec. The caller owns it.
/// Errors: resource with the bytes asked for and the system's reason.
[[nodiscard]] Result<int> create_memory(const std::string& name, std::size_t bytes);
/// The same, of which the first `at_once` bytes are allocated, and the others by `allocate_pages`. Where the system
/// cannot do that (before Linux 5.14) it is allocated in full.
[[nodiscard]] Result<int> create_growing_memory(const std::string& name, std::size_t bytes, std::size_t at_once);

/// Of memory that is mapped here.
struct MappedPart {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};
/// Has the system allocate all pages of `extents`. Those that are there stay as they are.
/// Errors: resource with the bytes needed and available.
[[nodiscard]] Status allocate_pages(std::span<const MappedPart> extents);

}  // namespace tutti
