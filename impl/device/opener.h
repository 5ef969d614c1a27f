// SPDX-License-Identifier: Apache-2.0
// A device in a shared object: libtutti_device_cuda.so exports `const tutti::DeviceOpener* tutti_device()`. It is
// built for one program, as transports are (impl/transports/build.h).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "impl/device/device.h"
#include "impl/transports/build.h"

namespace tutti {

struct DeviceOpener {
  std::uint64_t number = 0;  ///< kTransportNumber
  const char* built_for = nullptr;
  /// GPU `device`, from 0. Errors: unavailable with the reason.
  Result<std::unique_ptr<Device>> (*open)(int device) = nullptr;
};

/// What can be done where there is no GPU.
inline constexpr const char* kInsteadOfGpu = "--device host runs thread blocks as threads of the host";

/// What can be done where processes have no GPU each.
inline constexpr const char* kSeveralOnOneGpu = "--ranks-as blocks runs several ranks on one GPU";

/// What the device's object exports under a name.
struct DeviceExport {
  std::string path;  ///< of the object
  void* symbol = nullptr;
};

/// Of the object in the first of `folders` that has one, which stays loaded until the process ends. Nothing where no
/// folder has one; a null symbol where it does not export `name`. Errors: unavailable, naming the file that cannot be
/// loaded.
[[nodiscard]] Result<std::optional<DeviceExport>> device_export(std::span<const std::string> folders, const char* name);

/// The kernels of this program. Errors: unavailable, saying why there are none and what can be done instead.
[[nodiscard]] Result<const DeviceOpener*> find_kernels(std::span<const std::string> folders);

/// GPU `device`, by the object in the first of `folders` that has one. Errors: unavailable, saying why there is no GPU
/// and what can be done instead.
[[nodiscard]] Result<std::unique_ptr<Device>> open_gpu(std::span<const std::string> folders, int device = 0);

}  // namespace tutti
