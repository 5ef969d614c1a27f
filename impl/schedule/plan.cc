// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/plan.h"

#include <cstring>

namespace tutti {

Plan::Plan(PlanHeader header, std::span<const PlanOp> ops, std::span<const PlanOperand> operands,
           std::span<const PlanExposure> exposures) {
  header.ops = static_cast<std::uint32_t>(ops.size());
  header.operands = static_cast<std::uint32_t>(operands.size());
  header.exposures = static_cast<std::uint32_t>(exposures.size());
  const std::size_t bytes = sizeof header + ops.size_bytes() + operands.size_bytes() + exposures.size_bytes();
  block_.resize((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));

  std::byte* cursor = reinterpret_cast<std::byte*>(block_.data());
  const auto append = [&cursor](const void* data, std::size_t size) {
    if (size > 0) std::memcpy(cursor, data, size);
    cursor += size;
  };
  append(&header, sizeof header);
  append(ops.data(), ops.size_bytes());
  append(operands.data(), operands.size_bytes());
  append(exposures.data(), exposures.size_bytes());
}

}  // namespace tutti
