// SPDX-License-Identifier: Apache-2.0
// From wrong elements to a likely cause. Each cause is a hypothesis that predicts what the output would hold. The first
// one that predicts every sampled wrong element of the first bad block, bit for bit, is named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/verify/check.h"

namespace tutti::harness::verify {

struct WrongElement {
  Count index = 0;  ///< in the whole output
  std::uint64_t expected = 0;
  std::uint64_t actual = 0;
};

/// What an output holds, for whoever asks: a device's is fetched then.
using FetchOutput = std::function<std::span<const std::byte>()>;

/// What the comparison saw.
struct WrongOutput {
  static constexpr std::size_t kMost = 64;
  CheckResult result;
  std::vector<WrongElement> wrong;  ///< the first ones, at most kMost
  Count poisoned = 0;               ///< wrong elements that still hold the poison
  FetchOutput output;               ///< valid as long as the function
};

struct Diagnosis {
  std::string text;       ///< one sentence, or empty where no hypothesis fits
  bool is_cause = false;  ///< false: what is seen, and no more than that
};
/// Cost: up to P^2 elements, or a block; only for outputs that are wrong.
[[nodiscard]] Diagnosis diagnose(const Operation& operation, int rank, const WrongOutput& wrong_output);

/// The bits of the first element in `bytes`; an element as "5 (0x40a00000)".
[[nodiscard]] std::uint64_t element_bits(std::span<const std::byte> bytes, Dtype dtype);
[[nodiscard]] std::string element_text(std::uint64_t bits, Dtype dtype);
/// The bits of the poison in element `index`: elements of one byte alternate, and a result may equal one of those by
/// chance.
[[nodiscard]] std::uint64_t poison_bits(Dtype dtype, std::uint64_t salt, Count index);

}  // namespace tutti::harness::verify
