// SPDX-License-Identifier: Apache-2.0
// Private memory of another process of this host, read and written through the kernel (process_vm_readv(2)): one copy,
// where staging in shared memory takes two. The kernel allows it to processes of one user that may trace each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "impl/types/status.h"

namespace tutti {

/// Where others find a word of this process; plain data. Whoever reads the word there has found the right process: a
/// number of a process means another one in another namespace.
struct MemoryOffer {
  std::uint64_t process = 0;
  std::uint64_t address = 0;
  std::uint64_t word = 0;
};

/// That of this process. Lets the descendants of its parent, which are the ranks that the parent has started, read and
/// write its memory where the kernel asks for such a permission (Yama).
[[nodiscard]] MemoryOffer offer_memory();
/// Whether this process reads and writes the memory of the one that made the offer. Errors: unavailable.
[[nodiscard]] Status try_memory(const MemoryOffer& offer);
/// Whether processes of this machine may be expected to reach each other's memory: asks no other process.
/// Errors: unavailable, with the reason.
[[nodiscard]] Status expect_peer_memory();

/// Copies [from, from + bytes) of the process to `to` here. Errors: io.
[[nodiscard]] Status read_memory_of(int process, std::byte* to, const std::byte* from, std::size_t bytes);
/// Copies [from, from + bytes) from here to `to` of the process. Errors: io.
[[nodiscard]] Status write_memory_of(int process, const std::byte* from, std::byte* to, std::size_t bytes);

}  // namespace tutti
