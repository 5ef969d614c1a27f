// SPDX-License-Identifier: Apache-2.0
// Cache control for --cache cold and --cache rotate: flush puts memory out of all caches, read_all puts other memory in
// its place.
#pragma once

#include <cstddef>
#include <span>

#include "harness/floors.h"

namespace tutti::harness::machine {

/// Whether this CPU has an instruction for it that a program may use.
[[nodiscard]] bool can_flush();
/// Every line of `bytes` is written back and leaves the caches of all cores, whichever core had it; done on return.
/// Other memory stays where it is. Source: Intel SDM and AMD64 APM, CLFLUSH and MFENCE. Requires: can_flush.
void flush(std::span<const std::byte> bytes);

/// Reads every line of `bytes`, which takes other memory's place in the caches.
void read_all(std::span<const std::byte> bytes);

}  // namespace tutti::harness::machine
