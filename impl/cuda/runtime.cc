// SPDX-License-Identifier: Apache-2.0
#include "impl/cuda/runtime.h"

#include <dlfcn.h>
#include <unistd.h>

namespace tutti::cuda {
namespace {

constexpr const char* kVariable = "TUTTI_CUDART";
constexpr const char* kFiles[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};

/// Made by the driver's modules, also in a container that was given a GPU; the last is that of WSL.
constexpr const char* kSignsOfAGpu[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"};

FoundRuntime lacking(Lack lack, std::string why) {
  FoundRuntime found{.runtime = nullptr, .lack = lack, .why = std::move(why)};
  found.is_without_gpu = lack == Lack::library || lack == Lack::driver || lack == Lack::device;
  for (const char* const sign : kSignsOfAGpu) {
    if (::access(sign, F_OK) == 0) found.is_without_gpu = false;
  }
  return found;
}

/// The name of a function that the library lacks; null: it has all.
const char* resolve(void* library, Runtime& runtime) {
#define TUTTI_CUDA_RESOLVE(result, name, parameters)                                \
  runtime.name = reinterpret_cast<decltype(runtime.name)>(::dlsym(library, #name)); \
  if (runtime.name == nullptr) return #name;
  TUTTI_CUDA_FUNCTIONS(TUTTI_CUDA_RESOLVE)
#undef TUTTI_CUDA_RESOLVE
  return nullptr;
}

FoundRuntime without_devices(const Runtime& runtime, Error error, Environment environment) {
  const std::string& path = runtime.path;
  if (error == kInsufficientDriver && runtime.driver_version == 0) {
    return lacking(Lack::driver,
                   "no NVIDIA driver is loaded, so " + path +
                       " finds no GPU; install one, or give the container its GPUs (docker run --gpus all)");
  }
  if (error == kInsufficientDriver) {
    return lacking(Lack::newer_driver, "the NVIDIA driver is too old: it has CUDA " +
                                           version_text(runtime.driver_version) + ", and " + path + " needs " +
                                           version_text(runtime.version) +
                                           "; update the driver, or name an older runtime in " + kVariable);
  }
  if (error == kNoDevice || error == kSuccess) {
    const char* const visible = environment("CUDA_VISIBLE_DEVICES");
    std::string setting("not set");
    if (visible != nullptr) setting.assign("'").append(visible).append("'");
    return lacking(Lack::device, "the NVIDIA driver has no GPU for this process (CUDA_VISIBLE_DEVICES is " + setting +
                                     "); nvidia-smi -L lists those of the machine");
  }
  return lacking(Lack::other, "CUDA does not start: " + runtime.text_of("cudaGetDeviceCount", error) + " (" + path +
                                  "); nvidia-smi shows whether the driver works");
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string Runtime::text_of(const char* function, Error error) const {
  return std::string(function) + " failed: " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error);
}

FoundRuntime find_runtime(Environment environment) {
  const LoadedLibrary library =
      load_library({.variable = kVariable, .files = kFiles, .folder_of_wheels = "nvidia/*/lib"}, environment);
  if (library.handle == nullptr) {
    FoundRuntime found = lacking(Lack::library, library.why_not +
                                                    "; install CUDA's runtime (pip install nvidia-cuda-runtime-cu12), "
                                                    "or name its libcudart.so in " +
                                                    kVariable);
    found.is_without_gpu &= value_of(environment, kVariable).empty();  // who names one expects a GPU
    return found;
  }
  const auto runtime = std::make_shared<Runtime>();
  runtime->path = library.path;
  if (const char* const missing = resolve(library.handle, *runtime); missing != nullptr) {
    return lacking(Lack::symbol,
                   library.path + " has no " + missing +
                       ": it is not a CUDA runtime of version 11.4 or later; name another libcudart.so in " +
                       kVariable);
  }
  runtime->cudaRuntimeGetVersion(&runtime->version);
  runtime->cudaDriverGetVersion(&runtime->driver_version);  // 0: there is none
  const Error error = runtime->cudaGetDeviceCount(&runtime->devices);
  if (error != kSuccess || runtime->devices == 0) return without_devices(*runtime, error, environment);
  return {.runtime = runtime};
}

}  // namespace tutti::cuda
