// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/device_opener.h"

#include "impl/device/opener.h"

namespace tutti::harness::verify {

Result<std::unique_ptr<DeviceRunner>> open_gpu_runner(std::span<const std::string> folders, int device) {
  TUTTI_ASSIGN_OR_RETURN(const auto found, device_export(folders, "tutti_device_verifier"));
  if (!found) return std::unique_ptr<DeviceRunner>();
  const auto entry = reinterpret_cast<const RunnerOpener* (*)()>(found->symbol);
  if (entry == nullptr || entry()->number != kRunnerNumber) {
    return error(Code::unavailable, "{} verifies for another build of this program: build it again", found->path);
  }
  return entry()->open(device);
}

std::shared_ptr<const DeviceVerifier> gpu_verifier(std::span<const std::string> folders, int device) {
  auto runner = open_gpu_runner(folders, device);
  if (!runner.is_ok() || runner.value() == nullptr) return nullptr;
  return std::make_shared<const DeviceVerifier>(std::move(runner).value());
}

}  // namespace tutti::harness::verify
