// SPDX-License-Identifier: Apache-2.0
#include "impl/device/opener.h"

#include <dlfcn.h>
#include <filesystem>
#include <system_error>

namespace tutti {
namespace {

constexpr const char* kFile = "libtutti_device_cuda.so";

}  // namespace

Result<std::optional<DeviceExport>> device_export(std::span<const std::string> folders, const char* name) {
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path(folder) / kFile;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* const object = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* const reason = object == nullptr ? dlerror() : nullptr;
    if (object == nullptr) {
      return error(Code::unavailable, "{} cannot be loaded: {}", path.string(), reason == nullptr ? "" : reason);
    }
    return std::optional(DeviceExport{.path = path.string(), .symbol = dlsym(object, name)});
  }
  return std::optional<DeviceExport>();
}

Result<const DeviceOpener*> find_kernels(std::span<const std::string> folders) {
  const auto found = device_export(folders, "tutti_device");
  if (!found.is_ok()) return error(found.status().code(), "no GPU: {}", found.status().message());
  if (!found.value()) {
    return error(Code::unavailable,
                 "no GPU: this build has no kernels ({} is not there: configure with "
                 "-DTUTTI_WITH_CUDA=ON where nvcc is); {}",
                 kFile, kInsteadOfGpu);
  }
  const DeviceExport& exported = *found.value();
  const auto entry = reinterpret_cast<const DeviceOpener* (*)()>(exported.symbol);
  if (entry == nullptr) return error(Code::unavailable, "no GPU: {} has no device", exported.path);
  const DeviceOpener& opener = *entry();
  if (opener.number != kTransportNumber) {
    return error(Code::unavailable, "no GPU: {} was built for {}, this program is {}: build it again", exported.path,
                 opener.built_for, kTransportBuild);
  }
  return &opener;
}

Result<std::unique_ptr<Device>> open_gpu(std::span<const std::string> folders, int device) {
  TUTTI_ASSIGN_OR_RETURN(const DeviceOpener* const opener, find_kernels(folders));
  return opener->open(device);
}

}  // namespace tutti
