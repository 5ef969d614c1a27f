// SPDX-License-Identifier: Apache-2.0
// A block: some twenty samples of one variant in a row, on all hosts, verified at its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/host.h"
#include "harness/measure/variant.h"

namespace tutti::harness {

inline constexpr int kMostSamplesPerBlock = 20;

struct BlockOptions {
  std::uint64_t salt = 0;
  int samples = kMostSamplesPerBlock;  ///< at most kMostSamplesPerBlock
  int discarded = 2;                   ///< calls before the first sample
};

/// What all hosts know after a block.
struct BlockResult {
  std::vector<double> times_us;          ///< one per sample
  std::vector<int> slowest;              ///< the rank that left last, one per sample
  std::optional<double> line_before_ns;  ///< empty where there is no line to probe
  std::optional<double> line_after_ns;
  std::int64_t wrong = 0;  ///< elements on all hosts; barrier: samples that broke the rule
  std::string reason;      ///< the first host's that has one

  /// Whether the machine was in one state from beginning to end.
  [[nodiscard]] bool is_steady() const;
};

/// Ratio beyond which two round trips of a line are two states of the machine.
inline constexpr double kSameState = 1.5;
[[nodiscard]] bool is_same_state(double line_ns, double other_line_ns);

[[nodiscard]] Result<BlockResult> run_block(Host& host, Variant& variant, const BlockOptions& options);

}  // namespace tutti::harness
