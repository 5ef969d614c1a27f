// SPDX-License-Identifier: Apache-2.0
// `--machine FILE` of the commands that take a machine.
#pragma once

#include <string>

#include "harness/simulate/model.h"
#include "impl/types/status.h"

namespace tutti::program {

/// Errors: invalid_argument naming the flag, the file and the line.
[[nodiscard]] Result<harness::simulate::Machine> machine_of_file(const std::string& path);

}  // namespace tutti::program
