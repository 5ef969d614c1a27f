// SPDX-License-Identifier: Apache-2.0
// The domain of ranks in one address space: threads, or tasks in one thread. References are plain addresses, and any
// memory is shared. Memory is reserved, not committed: a channel that is never used costs nothing.
#pragma once

#include <memory>

#include "impl/transports/domain.h"
#include "impl/transports/transport.h"

namespace tutti::local {

/// The shape that suits `ranks` ranks: channels are reserved for every pair, and only the used ones take memory.
[[nodiscard]] DomainShape shape_for(int ranks);

/// Errors: resource with the bytes that could not be reserved.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape);

/// Its row in the table of transports.
[[nodiscard]] const Transport& transport();

}  // namespace tutti::local
