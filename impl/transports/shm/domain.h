// SPDX-License-Identifier: Apache-2.0
// The domain of ranks in several processes of one node: one memfd that every process maps, at an address of its own.
// References are offsets into the owner's heap. The memfd is allocated in full when it is created, so that lack of
// memory is an error with numbers and not a SIGBUS. It vanishes with its last process.
#pragma once

#include <memory>
#include <string>

#include "impl/transports/domain.h"

namespace tutti::shm {

/// Maps the memfd of `domain_bytes(shape)` zeroed bytes that all ranks of the job were given. `fd` stays the caller's.
/// Errors: invalid_argument when the file is smaller than the shape needs; resource when it cannot be mapped.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, int fd);

/// A memfd of `bytes` zeroed bytes, allocated in full, whose size cannot change; closed on exec. The caller owns it.
/// Errors: resource with the bytes asked for and the system's reason.
[[nodiscard]] Result<int> create_memory(const std::string& name, std::size_t bytes);

}  // namespace tutti::shm
