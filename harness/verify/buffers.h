// SPDX-License-Identifier: Apache-2.0
// Buffers that notice: guard zones before and after the payload, and a poison that no result can equal by accident.
//
//   | front guard (at least one page) | payload | back guard (at least one page) |
//
// The guards hold a pattern of their position, written at creation and compared on demand. The memory is plain, or
// comes from the caller's allocator: the shared heap, or another kind of memory (memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/verify/memory.h"
#include "impl/types/status.h"

namespace tutti::harness::verify {

/// Page-aligned private memory of the host. Errors: resource with the number of bytes.
[[nodiscard]] Allocator plain_memory();

struct GuardedBufferOptions {
  std::size_t bytes = 0;
  std::size_t guard_bytes = 4096;  ///< on each side, at least
  std::size_t alignment = 64;      ///< of the payload, a power of two, before `misalignment`
  std::size_t misalignment = 0;    ///< bytes by which the payload starts after that boundary; below `alignment`
  Allocator allocator = plain_memory();
};

/// A byte of a guard zone that was overwritten.
struct GuardDamage {
  std::ptrdiff_t offset = 0;  ///< from the first byte of the payload: negative before it, at least its size after it
  std::byte expected{};
  std::byte actual{};
  /// "byte 1 past the end of the buffer of 1000 bytes was overwritten: 0x41 instead of 0xa7"
  [[nodiscard]] std::string text(std::size_t payload_bytes) const;
};

/// Owns its memory. Movable.
class GuardedBuffer {
 public:
  /// Errors: invalid_argument naming the value and the range; those of the allocator.
  [[nodiscard]] static Result<GuardedBuffer> create(const GuardedBufferOptions& options);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  /// What `payload` and `memory` are addresses of.
  [[nodiscard]] Memory& kind() const { return *allocator_.kind; }
  /// Never null, also where it is empty.
  [[nodiscard]] std::span<std::byte> payload() const { return payload_; }
  /// Payload and guards.
  [[nodiscard]] std::span<const std::byte> memory() const { return memory_; }

  /// The damaged byte with the least offset; nullopt: all guards are as written.
  [[nodiscard]] std::optional<GuardDamage> check_guards() const;
  /// Writes the guards again, after damage was reported.
  void restore_guards();

 private:
  GuardedBuffer(std::span<std::byte> memory, std::span<std::byte> payload, Allocator allocator);
  /// Before and after the payload.
  [[nodiscard]] std::array<GuardZone, 2> zones() const;

  std::span<std::byte> memory_;
  std::span<std::byte> payload_;
  Allocator allocator_;
};

/// Writes the guard of a zone that begins at `offset` from the first byte of a buffer's memory.
void fill_guard(std::span<std::byte> bytes, std::size_t offset);
/// The least offset at which such a zone is not as written; nullopt: it is.
[[nodiscard]] std::optional<std::size_t> guard_damage(std::span<const std::byte> bytes, std::size_t offset);

/// The 16 bits that the poison of this salt repeats: a NaN as bfloat16 and, twice, as float.
[[nodiscard]] std::uint16_t poison_word(std::uint64_t salt);
/// Fills `bytes` with the poison of `salt`: another one for each refill, so that last time's poison cannot pass either.
void fill_poison(std::span<std::byte> bytes, std::uint64_t salt);

}  // namespace tutti::harness::verify
