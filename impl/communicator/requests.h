// SPDX-License-Identifier: Apache-2.0
// What is the same of a call whatever runs it: how a list of ranks becomes a group, and how long a message is.
#pragma once

#include <cstdint>
#include <span>

#include "impl/communicator/communicator.h"

namespace tutti {

/// Errors: invalid_argument for a rank out of range, or twice.
[[nodiscard]] Status check_group(std::span<const int> members, int ranks);
/// The same for the same list on all ranks; never 0.
[[nodiscard]] std::uint64_t hash_of_group(std::span<const int> members);

struct TransferRequest {
  bool is_send = false;
  int peer = 0;
  int ranks = 1;
  const void* buffer = nullptr;
  Count count = 0;
  Dtype dtype = Dtype::f32;
  int tag = 0;
};
/// Errors: invalid_argument for a value out of range.
[[nodiscard]] Result<std::int64_t> bytes_of_transfer(const TransferRequest& request);

}  // namespace tutti
