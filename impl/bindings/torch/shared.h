// SPDX-License-Identifier: Apache-2.0
// TUTTI_TORCH_SHARED=1: torch's tensors of the CPU lie in memory that the ranks of a host share. Calls of large tensors
// then run on shared buffers. Which calls do depends on what is the same on all ranks: that all have the memory, and the
// tensors' size. So a rank whose tensor lies elsewhere takes a copy, and no rank needs to ask the others.
#pragma once

#include <cstddef>

#include "impl/embed/arena.h"

namespace tutti::bindings {

/// Tensors of so many bytes and more lie there.
inline constexpr std::size_t kLeastShared = std::size_t{256} << 10U;
/// Of calls in which a rank only gives. Below, it is faster to give a copy and go on than to wait until it is taken.
inline constexpr std::size_t kLeastSharedOneWay = std::size_t{1} << 20U;

/// Makes torch allocate there from now on, if the variable is set. Throws invalid_argument for an unknown value,
/// runtime_error where there is no such memory.
void share_memory_if_asked();
/// That of this process. Null: torch allocates as it does. Throws as the above: a forked child that becomes a rank has
/// memory of its own.
[[nodiscard]] const embed::Arena* shared_memory();

}  // namespace tutti::bindings
