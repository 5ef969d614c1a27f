// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls: one program for each target, which the build names.
#include <cstddef>
#include <cstdint>

#include "suites/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  tutti::fuzz::TUTTI_FUZZ_TARGET({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
