// SPDX-License-Identifier: Apache-2.0
// The domain of ranks in several processes of one node: one memfd that every process maps, at an address of its own.
// References are offsets into the owner's heap. The memfd is one of shared_memory.h: where it is not allocated in full,
// the domain allocates when it is told what is needed.
#pragma once

#include <memory>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/transports/shared_memory.h"
#include "impl/transports/transport.h"

namespace tutti::shm {

/// Maps the memfd of `domain_bytes(shape)` zeroed bytes that all ranks of the job were given. `fd` stays the caller's.
/// Errors: invalid_argument when the file is smaller than the shape needs; resource when it cannot be mapped.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, int fd, std::size_t offset = 0);
/// The same, of the transport `name`.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain_of(const char* name, const DomainShape& shape, int fd,
                                                             std::size_t offset = 0);
/// The same, whose ranks bring their heaps: `heaps[rank]`, as mapped here, which outlive the domain. All of a heap is
/// shared, and alloc_shared has no room: whoever brought it deals it out. Requires: shape.heap_bytes is 0.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain_with_heaps(const DomainShape& shape, int fd,
                                                                     std::vector<MappedPart> heaps);

/// Its row in the table of transports.
[[nodiscard]] const Transport& transport();

}  // namespace tutti::shm
