// SPDX-License-Identifier: Apache-2.0
// Memory that processes share without a name: a file in memory. It is allocated in full when it is created, so that
// lack of memory is an error with numbers and not a SIGBUS. It vanishes with its last process.
#pragma once

#include <cstddef>
#include <string>

#include "impl/types/status.h"

namespace tutti {

/// A memfd of `bytes` zeroed bytes, allocated in full, whose size cannot change; closed on exec. The caller owns it.
/// Errors: resource with the bytes asked for and the system's reason.
[[nodiscard]] Result<int> create_memory(const std::string& name, std::size_t bytes);

}  // namespace tutti
