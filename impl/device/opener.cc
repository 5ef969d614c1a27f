// SPDX-License-Identifier: Apache-2.0
#include "impl/device/opener.h"

#include <dlfcn.h>
#include <filesystem>
#include <system_error>

namespace tutti {
namespace {

constexpr const char* kFile = "libtutti_device_cuda.so";

}  // namespace

Result<std::unique_ptr<Device>> open_gpu(std::span<const std::string> folders) {
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path(folder) / kFile;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* const object = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* const reason = object == nullptr ? dlerror() : nullptr;
    if (object == nullptr) {
      return error(Code::unavailable, "no GPU: {} cannot be loaded: {}", path.string(), reason == nullptr ? "" : reason);
    }
    const auto entry = reinterpret_cast<const DeviceOpener* (*)()>(dlsym(object, "tutti_device"));
    if (entry == nullptr) return error(Code::unavailable, "no GPU: {} has no device", path.string());
    const DeviceOpener& opener = *entry();
    if (opener.number != kTransportNumber) {
      return error(Code::unavailable, "no GPU: {} was built for {}, this program is {}: build it again", path.string(),
                   opener.built_for, kTransportBuild);
    }
    return opener.open();
  }
  return error(Code::unavailable, "no GPU: this build has no kernels ({} is not there: configure with "
                                  "-DTUTTI_WITH_CUDA=ON where nvcc is); {}",
               kFile, kInsteadOfGpu);
}

}  // namespace tutti
