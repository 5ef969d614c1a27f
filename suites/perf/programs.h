// SPDX-License-Identifier: Apache-2.0
// The drop-in programs: one binary that is another program under each name. A row here is all that differs.
#pragma once

#include <span>
#include <string_view>

#include "harness/cases/case.h"
#include "impl/types/status.h"

namespace tutti::perf {

/// What a rank has for another is a multiple of this number of bytes, rounded down.
inline constexpr std::int64_t kChunkBytes = 16;

struct Program {
  std::string_view name;
  Collective collective;
  std::string_view algorithm = "auto";
  /// hypercube: a power of two of ranks only, an empty redop, and bandwidths of what each rank receives.
  bool is_hypercube = false;
  /// sendrecv: reduces nothing and yet runs once per op, and shows it.
  bool repeats_for_ops = false;
};

[[nodiscard]] std::span<const Program> all_programs();
/// By the last part of a path. Errors: invalid_argument naming the nearest right one.
[[nodiscard]] Result<Program> find_program(std::string_view path);

/// What one row moves. A divided collective has a block per rank, of a multiple of 16 bytes, rounded down: below 16
/// bytes per rank it is a row of nothing. What alltoallv really moves of it is for its Traffic to say.
struct Size {
  Count count = 0;         ///< of a block, and the column `count`
  std::int64_t bytes = 0;  ///< the column `size`
};
[[nodiscard]] Size size_for(const Program& program, std::int64_t bytes, Dtype dtype, int ranks);

/// Bandwidths in 1e9 bytes/s of an operation of `size` that takes so long; 0 where it takes no time.
struct Bandwidths {
  double algorithm = 0;
  double bus = 0;
};
[[nodiscard]] Bandwidths bandwidths_of(const Program& program, const Size& size, Dtype dtype, const Problem& problem,
                                       double time_us);

}  // namespace tutti::perf
