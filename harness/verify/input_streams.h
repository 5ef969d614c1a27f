// SPDX-License-Identifier: Apache-2.0
// The constants of an input, for whoever computes its elements by other means than fill_input: a device.
#pragma once

#include "harness/verify/input_values.h"
#include "harness/verify/inputs.h"

namespace tutti::harness::verify {

/// Of the elements whose index has this upper half. Requires: supports_inputs.
[[nodiscard]] Stream stream_of(const InputSpec& spec, std::uint64_t index_high);

}  // namespace tutti::harness::verify
