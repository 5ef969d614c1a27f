// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/buffers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "harness/verify/guard.h"

namespace tutti::harness::verify {
namespace {

/// Several periods of the guard.
constexpr std::size_t kGuardPart = 16 * kGuardPeriod;
constexpr auto kGuard = [] {
  std::array<std::byte, kGuardPart> guard{};
  for (std::size_t i = 0; i < kGuardPart; ++i) guard[i] = guard_byte(i);
  return guard;
}();

/// Calls `f(at, pattern)` for parts of offsets [from, to): what their guard is.
template <class F>
void for_each_guard_part(std::size_t from, std::size_t to, F&& f) {
  for (std::size_t at = from; at < to;) {
    const std::size_t start = at % kGuardPart;
    const auto pattern = std::span(kGuard).subspan(start, std::min(to - at, kGuardPart - start));
    f(at, pattern);
    at += pattern.size();
  }
}

}  // namespace

Allocator plain_memory() { return host_memory().allocator(); }

std::string GuardDamage::text(std::size_t payload_bytes) const {
  const bool is_before = offset < 0;
  const std::size_t distance =
      is_before ? static_cast<std::size_t>(-offset) : static_cast<std::size_t>(offset) - payload_bytes + 1;
  return fmt::format("byte {} {} the buffer of {} bytes was overwritten: 0x{:02x} instead of 0x{:02x}", distance,
                     is_before ? "before" : "past the end of", payload_bytes, std::to_integer<unsigned>(actual),
                     std::to_integer<unsigned>(expected));
}

Result<GuardedBuffer> GuardedBuffer::create(const GuardedBufferOptions& options) {
  if (!std::has_single_bit(options.alignment)) {
    return error(Code::invalid_argument, "alignment {}: must be a power of two", options.alignment);
  }
  if (options.misalignment >= options.alignment) {
    return error(Code::invalid_argument, "misalignment {}: must be in [0, {})", options.misalignment,
                 options.alignment);
  }
  // Aligning takes less than `alignment`, the misalignment again.
  const std::size_t total = options.bytes + 2 * options.guard_bytes + 2 * options.alignment;
  TUTTI_ASSIGN_OR_RETURN(void* const pointer, options.allocator.allocate(total));
  auto* const memory = static_cast<std::byte*>(pointer);
  const std::size_t address = reinterpret_cast<std::uintptr_t>(memory) + options.guard_bytes;
  const std::size_t aligned = (address + options.alignment - 1) & ~(options.alignment - 1);
  std::byte* const payload = memory + options.guard_bytes + (aligned - address) + options.misalignment;
  GuardedBuffer buffer({memory, total}, {payload, options.bytes}, options.allocator);
  buffer.restore_guards();
  return buffer;
}

GuardedBuffer::GuardedBuffer(std::span<std::byte> memory, std::span<std::byte> payload, Allocator allocator)
    : memory_(memory), payload_(payload), allocator_(std::move(allocator)) {}

GuardedBuffer::~GuardedBuffer() {
  if (memory_.data() != nullptr) allocator_.release(memory_.data());
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, {})),
      payload_(std::exchange(other.payload_, {})),
      allocator_(other.allocator_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(payload_, other.payload_);
  std::swap(allocator_, other.allocator_);
  return *this;
}

std::array<GuardZone, 2> GuardedBuffer::zones() const {
  const auto start = static_cast<std::size_t>(payload_.data() - memory_.data());
  const std::size_t end = start + payload_.size();
  return {GuardZone{.there = memory_.first(start), .offset = 0},
          GuardZone{.there = memory_.subspan(end), .offset = end}};
}

std::optional<GuardDamage> GuardedBuffer::check_guards() const {
  const std::optional<std::size_t> bad = kind().guard_damage(zones());
  if (!bad) return std::nullopt;
  std::byte actual{};
  kind().read(std::span(&actual, 1), memory_.data() + *bad);
  return GuardDamage{.offset = static_cast<std::ptrdiff_t>(*bad) - (payload_.data() - memory_.data()),
                     .expected = guard_byte(*bad),
                     .actual = actual};
}

void GuardedBuffer::restore_guards() { kind().fill_guards(zones()); }

void fill_guard(std::span<std::byte> bytes, std::size_t offset) {
  for_each_guard_part(offset, offset + bytes.size(), [&](std::size_t at, std::span<const std::byte> pattern) {
    std::ranges::copy(pattern, bytes.data() + (at - offset));
  });
}

std::optional<std::size_t> guard_damage(std::span<const std::byte> bytes, std::size_t offset) {
  std::optional<std::size_t> damage;
  for_each_guard_part(offset, offset + bytes.size(), [&](std::size_t at, std::span<const std::byte> pattern) {
    const std::span part = bytes.subspan(at - offset, pattern.size());
    if (damage || std::memcmp(part.data(), pattern.data(), pattern.size()) == 0) return;
    const auto bad = std::ranges::mismatch(part, pattern).in1;
    damage = at + static_cast<std::size_t>(bad - part.begin());
  });
  return damage;
}

std::uint16_t poison_word(std::uint64_t salt) {
  return static_cast<std::uint16_t>(0x7fc0U | ((salt * 0x9e3779b97f4a7c15U) >> 58U));
}

void fill_poison(std::span<std::byte> bytes, std::uint64_t salt) {
  std::array<std::uint16_t, 512> pattern;
  pattern.fill(poison_word(salt));
  for (std::size_t done = 0; done < bytes.size(); done += sizeof(pattern)) {
    std::memcpy(bytes.data() + done, pattern.data(), std::min(bytes.size() - done, sizeof(pattern)));
  }
}

}  // namespace tutti::harness::verify
