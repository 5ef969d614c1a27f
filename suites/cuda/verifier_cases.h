// SPDX-License-Identifier: Apache-2.0
// What gpu_unit asks of the verifier on a device.
#pragma once

#include <memory>

#include "harness/verify/device_runner.h"
#include "impl/device/device.h"
#include "suites/cuda/gpu_unit.h"

namespace tutti::cuda {

/// Inputs of every dtype, op and kind of values, poison and guards, bit for bit; and verdicts on right and damaged
/// outputs, word by word: of `runner`, on memory that both `device` and the host reach, against the host's.
[[nodiscard]] Compared verifier_cases(Device& device, std::unique_ptr<harness::verify::DeviceRunner> runner,
                                      bool is_small);

}  // namespace tutti::cuda
