// SPDX-License-Identifier: Apache-2.0
// A runner for a GPU, in the shared object that the kernels of ranks as thread blocks are in (impl/device/opener.h):
// libtutti_device_cuda.so exports `const RunnerOpener* tutti_device_verifier()` as well. It is built for one program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "harness/verify/device_runner.h"
#include "harness/verify/device_verifier.h"
#include "runner_build.h"

namespace tutti::harness::verify {

/// A hash of the headers that both sides must have alike (harness/CMakeLists.txt).
inline constexpr std::uint64_t kRunnerNumber = TUTTI_RUNNER_NUMBER;

struct RunnerOpener {
  std::uint64_t number = 0;  ///< kRunnerNumber
  /// Errors: unavailable with the reason.
  Result<std::unique_ptr<DeviceRunner>> (*open)(int device) = nullptr;
};

/// For GPU `device`, by the object in the first of `folders` that has one, which stays loaded. Null where none has: the
/// host verifies then. Errors: unavailable where it is there and cannot be used.
[[nodiscard]] Result<std::unique_ptr<DeviceRunner>> open_gpu_runner(std::span<const std::string> folders, int device);

/// A verifier that runs there; null where nothing can, whatever the reason: the host verifies then, which is slower.
[[nodiscard]] std::shared_ptr<const DeviceVerifier> gpu_verifier(std::span<const std::string> folders, int device);

}  // namespace tutti::harness::verify
