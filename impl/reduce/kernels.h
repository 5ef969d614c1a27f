// SPDX-License-Identifier: Apache-2.0
// The CPU kernels behind a MOVE: copy and reduction over any number of sources and destinations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/types/dtype.h"
#include "impl/types/op.h"

namespace tutti {

/// For every element i of `bytes`: destination_j[i] <- source_0[i] op source_1[i] op ... for every j.
/// Reduced left to right. Floats of 8 and 16 bits accumulate in float and round to nearest even once, on the store.
/// Integers wrap. NaN propagates through min and max. `is_final` divides by `ranks` where the op is avg (floats: the
/// accumulated sum divided by P; integers: truncated towards zero). README.md of impl/collective has every rule.
/// Shapes: each array holds `bytes` bytes, any alignment; a destination is disjoint from a source or equal to it.
struct KernelArguments {
  std::byte* const* destinations = nullptr;
  int destination_count = 0;
  const std::byte* const* sources = nullptr;
  int source_count = 0;
  std::size_t bytes = 0;
  int ranks = 1;
  bool is_final = false;
  /// Destinations, by bit, that get non-temporal stores where possible, completed (sfence) before returning.
  std::uint64_t streamed = 0;
  /// Of a kernel that an instrument has put in place of a real one, which looks at it.
  const void* context = nullptr;
};

inline constexpr std::uint64_t kAllDestinations = ~std::uint64_t{0};

using Kernel = void (*)(const KernelArguments&);

/// As a Kernel for one destination and few bytes, nothing to divide: without its preparations. Shapes: `source_count`
/// >= 1.
using SmallKernel = void (*)(std::byte* destination, const std::byte* const* sources, int source_count,
                             std::size_t bytes);

/// The best kernel that this CPU runs (AVX-512, AVX2 or the baseline), chosen once. With one source, or Op::none, it
/// copies (and divides, where final and avg): a copy keeps every bit, those of a NaN too. Requires: op_exists.
[[nodiscard]] Kernel kernel_for(Dtype dtype, Op op);

/// The small kernel of the same instruction set. Requires: op is not Op::none.
[[nodiscard]] SmallKernel small_kernel_for(Dtype dtype, Op op);

/// The instruction set that `kernel_for` chose: "avx512", "avx2" or "baseline".
[[nodiscard]] const char* kernel_isa();

}  // namespace tutti
