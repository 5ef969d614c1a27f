// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/device_opener.h"

#include <dlfcn.h>
#include <filesystem>
#include <system_error>

namespace tutti::harness::verify {
namespace {

constexpr const char* kFile = "libtutti_device_cuda.so";

}  // namespace

Result<std::unique_ptr<DeviceRunner>> open_gpu_runner(std::span<const std::string> folders, int device) {
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path(folder) / kFile;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* const object = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* const reason = object == nullptr ? dlerror() : nullptr;
    if (object == nullptr) {
      return error(Code::unavailable, "{} cannot be loaded: {}", path.string(), reason == nullptr ? "" : reason);
    }
    const auto entry = reinterpret_cast<const RunnerOpener* (*)()>(dlsym(object, "tutti_device_verifier"));
    if (entry == nullptr || entry()->number != kRunnerNumber) {
      return error(Code::unavailable, "{} verifies for another build of this program: build it again", path.string());
    }
    return entry()->open(device);
  }
  return std::unique_ptr<DeviceRunner>();
}

std::shared_ptr<const DeviceVerifier> gpu_verifier(std::span<const std::string> folders, int device) {
  auto runner = open_gpu_runner(folders, device);
  if (!runner.is_ok() || runner.value() == nullptr) return nullptr;
  return std::make_shared<const DeviceVerifier>(std::move(runner).value());
}

}  // namespace tutti::harness::verify
