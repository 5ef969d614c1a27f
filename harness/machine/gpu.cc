// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/gpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>

#include <fmt/format.h>

#include "impl/cuda/library.h"
#include "impl/cuda/runtime.h"

namespace tutti::harness::machine {
namespace {

using Answer = int;    // nvmlReturn_t
using Device = void*;  // nvmlDevice_t
constexpr Answer kSuccess = 0, kTooSmall = 7;
constexpr int kMultiprocessorClock = 1;
constexpr int kUncorrected = 1, kSinceDriver = 0;  // of ECC errors

/// nvmlProcessInfo_t, as the third version of its function has it.
struct Process {
  unsigned id;
  unsigned long long bytes;
  unsigned instance, part;
};

/// X(result, name, parameters)
#define TUTTI_NVML_FUNCTIONS(X)                                                                           \
  X(Answer, nvmlInit_v2, ())                                                                              \
  X(const char*, nvmlErrorString, (Answer answer))                                                        \
  X(Answer, nvmlDeviceGetCount_v2, (unsigned* count))                                                     \
  X(Answer, nvmlDeviceGetHandleByIndex_v2, (unsigned index, Device* device))                              \
  X(Answer, nvmlDeviceGetHandleByPciBusId_v2, (const char* bus, Device* device))                          \
  X(Answer, nvmlDeviceGetName, (Device device, char* name, unsigned bytes))                               \
  X(Answer, nvmlDeviceGetClockInfo, (Device device, int type, unsigned* mhz))                             \
  X(Answer, nvmlDeviceGetMaxClockInfo, (Device device, int type, unsigned* mhz))                          \
  X(Answer, nvmlDeviceGetCurrentClocksThrottleReasons, (Device device, unsigned long long* reasons))      \
  X(Answer, nvmlDeviceGetTotalEccErrors, (Device device, int kind, int since, unsigned long long* count)) \
  X(Answer, nvmlDeviceGetComputeRunningProcesses_v3, (Device device, unsigned* count, Process* processes))

struct Nvml {
#define TUTTI_NVML_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TUTTI_NVML_FUNCTIONS(TUTTI_NVML_MEMBER)
#undef TUTTI_NVML_MEMBER
};

struct FoundNvml {
  std::shared_ptr<const Nvml> nvml;
  std::string why_not;
};

FoundNvml find_nvml() {
  constexpr const char* kVariable = "TUTTI_NVML";
  constexpr const char* kFiles[] = {"libnvidia-ml.so.1"};
  const cuda::LoadedLibrary library =
      cuda::load_library({.variable = kVariable, .files = kFiles, .folder_of_wheels = "nvidia/nvml/lib"}, std::getenv);
  if (library.handle == nullptr) {
    const bool is_named = !cuda::value_of(std::getenv, kVariable).empty();
    return {.nvml = nullptr,
            .why_not = is_named ? library.why_not
                                : "no libnvidia-ml.so.1 in the loader's path, which comes with NVIDIA's driver"};
  }
  const auto nvml = std::make_shared<Nvml>();
#define TUTTI_NVML_RESOLVE(result, name, parameters)                                   \
  nvml->name = reinterpret_cast<decltype(nvml->name)>(::dlsym(library.handle, #name)); \
  if (nvml->name == nullptr) return {.nvml = nullptr, .why_not = library.path + " has no " #name};
  TUTTI_NVML_FUNCTIONS(TUTTI_NVML_RESOLVE)
#undef TUTTI_NVML_RESOLVE
  if (const Answer answer = nvml->nvmlInit_v2(); answer != kSuccess) {
    return {.nvml = nullptr, .why_not = library.path + " does not start: " + nvml->nvmlErrorString(answer)};
  }
  return {.nvml = nvml, .why_not = ""};
}

const FoundNvml& library() {
  static const FoundNvml found = find_nvml();
  return found;
}

const cuda::FoundRuntime& runtime() {
  static const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  return found;
}

std::string bus_of(int device) {
  std::array<char, 32> bus{};
  const auto& cuda = runtime().runtime;
  const bool is_known = cuda != nullptr && device >= 0 && device < cuda->devices &&
                        cuda->cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) == cuda::kSuccess;
  return is_known ? bus.data() : "";
}

GpuSeen look_at(const Nvml& nvml, Device device) {
  GpuSeen seen;
  std::array<char, 96> name{};
  if (nvml.nvmlDeviceGetName(device, name.data(), name.size()) == kSuccess) seen.name = name.data();
  nvml.nvmlDeviceGetClockInfo(device, kMultiprocessorClock, &seen.clock_mhz);
  nvml.nvmlDeviceGetMaxClockInfo(device, kMultiprocessorClock, &seen.most_clock_mhz);
  unsigned long long number = 0;
  if (nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &number) == kSuccess) seen.throttling = number;
  number = 0;
  if (nvml.nvmlDeviceGetTotalEccErrors(device, kUncorrected, kSinceDriver, &number) == kSuccess)
    seen.ecc_errors = number;
  std::vector<Process> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  const Answer answer = nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data());
  if (answer == kSuccess || answer == kTooSmall) {
    processes.resize(std::min<std::size_t>(count, processes.size()));
    for (const Process& one : processes) seen.processes.push_back(one.id);
  }
  return seen;
}

}  // namespace

GpusSeen look_at_gpus() {
  const auto& [nvml, why_not] = library();
  if (nvml == nullptr) return {.gpus = {}, .why_not = why_not};
  unsigned count = 0;
  if (const Answer answer = nvml->nvmlDeviceGetCount_v2(&count); answer != kSuccess) {
    return {.gpus = {}, .why_not = fmt::format("NVML counts no GPUs: {}", nvml->nvmlErrorString(answer))};
  }
  GpusSeen all;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) == kSuccess) all.gpus.push_back(look_at(*nvml, device));
  }
  if (all.gpus.empty()) all.why_not = "NVML knows no GPU that this process may use";
  return all;
}

GpusSeen look_at_gpu(int number) {
  const auto& [nvml, why_not] = library();
  if (nvml == nullptr) return {.gpus = {}, .why_not = why_not};
  const std::string bus = bus_of(number);
  Device device = nullptr;
  if (bus.empty() || nvml->nvmlDeviceGetHandleByPciBusId_v2(bus.c_str(), &device) != kSuccess) {
    return {.gpus = {}, .why_not = fmt::format("NVML does not know CUDA's GPU {}", number)};
  }
  GpusSeen one{.gpus = {look_at(*nvml, device)}, .why_not = ""};
  one.gpus.front().bus = bus;
  return one;
}

std::string why_no_cuda() { return runtime().runtime != nullptr ? "" : runtime().why; }

std::string gpu_model(int device) {
  const auto& cuda = runtime().runtime;
  std::vector<char> properties(cuda::kPropertiesBytes);
  const bool is_known = cuda != nullptr && device >= 0 && device < cuda->devices &&
                        cuda->cudaGetDeviceProperties(properties.data(), device) == cuda::kSuccess;
  return is_known ? properties.data() : "";
}

std::string throttling_text(std::uint64_t reasons) {
  struct Reason {
    std::uint64_t bits;
    std::string_view word;
  };
  // Idling, chosen clocks and a synchronised boost slow down nothing that runs.
  constexpr std::array kReasons{Reason{0x4, "the power limit"}, Reason{0x8, "the hardware"},
                                Reason{0x20 | 0x40, "heat"}, Reason{0x80, "the power supply"}};
  std::string text;
  for (const Reason& one : kReasons) {
    if ((reasons & one.bits) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.word);
  }
  return text;
}

std::string gpu_disturbances(const GpuSeen& before, const GpuSeen& after, unsigned own, int ranks_of_gpu) {
  std::string words;
  const auto add = [&words](bool is_seen, std::string_view word) {
    if (is_seen) words += fmt::format("{}{}", words.empty() ? "" : "; ", word);
  };
  add(!throttling_text(before.throttling | after.throttling).empty(), "gpu_throttled");
  add(after.ecc_errors > before.ecc_errors, "gpu_ecc");
  // A container may not know its own processes by the numbers that NVML has: then all but as many are others.
  const auto& all = after.processes;
  const bool knows_own = std::ranges::find(all, own) != all.end();
  const auto most = static_cast<std::size_t>(ranks_of_gpu);
  add(knows_own ? all.size() > most : std::max(all.size(), before.processes.size()) > most, "gpu_shared");
  return words;
}

}  // namespace tutti::harness::machine
