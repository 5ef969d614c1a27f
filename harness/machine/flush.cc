// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/flush.h"

#include "impl/types/status.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tutti::harness::machine {
namespace {

constexpr std::size_t kLineBytes = 64;

}  // namespace

void read_all(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) {
    static_cast<void>(*const_cast<const volatile std::byte*>(bytes.data() + at));
  }
}

#ifdef __x86_64__

bool can_flush() { return true; }

void flush(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) _mm_clflush(bytes.data() + at);
  _mm_clflush(bytes.data() + bytes.size() - 1);  // where the first line is not a whole one
  _mm_mfence();
}

#else

bool can_flush() { return false; }

void flush(std::span<const std::byte> /*bytes*/) { TUTTI_ASSERT(false, "no instruction that flushes a cache line"); }

#endif

}  // namespace tutti::harness::machine
