// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/gpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/session/meeting.h"
#include "impl/cuda/runtime.h"

namespace tutti::perf {
namespace {

/// From which version on ranks may share a GPU.
constexpr const char* kSharedGpuVariable = "NCCL_MULTI_RANK_GPU_ENABLE";

std::vector<std::string> backend_directories() {
  const char* const variable = std::getenv("TUTTI_BACKENDS");
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  return harness::backend_directories(variable == nullptr ? "" : variable, program.parent_path().string());
}

const cuda::FoundRuntime& runtime() {
  static const cuda::FoundRuntime found = cuda::find_runtime(std::getenv);
  return found;
}

/// What the backend says of its library. Errors: unavailable: it is not there, or cannot be used.
Result<nlohmann::json> describe_nccl() {
  const auto directories = backend_directories();
  if (harness::find_backend(kNccl, directories).status().code() != Code::ok) {
    return error(Code::unavailable, "backend nccl is not there: no libtutti_backend_nccl.so beside the program");
  }
  TUTTI_ASSIGN_OR_RETURN(const harness::LoadedBackend library, harness::LoadedBackend::load(kNccl, directories));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, library.describe());
  nlohmann::json said = nlohmann::json::parse(text, nullptr, false);
  if (!said.is_object()) return error(Code::unavailable, "backend nccl cannot say what it is: '{}'", text);
  if (said.contains("missing")) return error(Code::unavailable, "backend nccl: {}", said.value("missing", ""));
  return said;
}

/// What a flag that has a meaning on GPUs alone means there. Errors: invalid_argument.
Status apply(char letter, int value, Settings& settings) {
  switch (letter) {
    case 'D':
    case 'V':
      return error(Code::invalid_argument, "-{} {}: NCCL's device API is not measured: leave it out", letter, value);
    case 'G':
      if (value < 0) {
        return error(Code::invalid_argument, "-G {}: must be a whole number from 0, how often a graph is launched",
                     value);
      }
      settings.launches = value;
      return {};
    case 'R':
      if (value != 1) {
        return error(
            Code::invalid_argument,
            "-R {}: must be 0 or 1: buffers are registered for each rank; symmetric windows, which have to lie in "
            "NCCL's own memory, are not measured yet",
            value);
      }
      settings.registration = value;
      return {};
    default:
      settings.notes.push_back(fmt::format("-{} {} is left aside", letter, value));
      return {};
  }
}

/// Flags that contradict each other on GPUs. Errors: invalid_argument.
Status check_on_gpus(const Settings& settings) {
  if (settings.launches > 0 && settings.blocking != 0) {
    return error(
        Code::invalid_argument,
        "-G {} and -z {}: what a graph has captured is launched as a whole, and waited for as a whole: leave one "
        "of them out",
        settings.launches, settings.blocking);
  }
  if (settings.launches > 0 && settings.times_each) {
    return error(Code::invalid_argument,
                 "-G {} and -I 1: what a graph has captured has no times of its own: leave one of them out",
                 settings.launches);
  }
  if (settings.times_each && settings.skipped >= settings.iterations) {
    return error(Code::invalid_argument, "-K {} skips the times of all {} groups of -m {}: did you mean '-K {}'?",
                 settings.skipped, settings.iterations, settings.aggregated, settings.iterations - 1);
  }
  return {};
}

std::string gpus_text(int count) { return count == 1 ? "is 1 GPU" : fmt::format("are {} GPUs", count); }

}  // namespace

Status settle_backend(Settings& settings) {
  const bool is_asked = settings.backend == kNccl;
  if (settings.backend.empty() || is_asked) {
    // The library, of some 200 MB, is not loaded where there is no GPU.
    Status usable = runtime().runtime != nullptr ? describe_nccl().status()
                                                 : error(Code::unavailable, "backend nccl: {}", runtime().why);
    if (is_asked) TUTTI_RETURN_IF_ERROR(usable);
    settings.backend = usable.is_ok() ? kNccl : "tutti";
  }
  const bool is_on_gpus = settings.backend == kNccl;
  for (const auto& [letter, value] : settings.of_gpus) {
    if (!is_on_gpus) {
      settings.notes.push_back(fmt::format("-{} {} has no meaning on CPU ranks: left aside", letter, value));
    } else {
      TUTTI_RETURN_IF_ERROR(apply(letter, value, settings));
    }
  }
  if (is_on_gpus) TUTTI_RETURN_IF_ERROR(check_on_gpus(settings));
  if (settings.ranks_per_gpu == 1) return {};
  if (!is_on_gpus) {
    return error(Code::invalid_argument, "--ranks-per-gpu {}: has no meaning on CPU ranks; leave it out",
                 settings.ranks_per_gpu);
  }
  ::setenv(kSharedGpuVariable, "1", 0);
  return {};
}

Result<std::vector<int>> devices_of(const Settings& settings, int first, int ranks) {
  std::vector<int> devices;
  for (int rank = first; rank < first + ranks; ++rank) devices.push_back(rank / settings.ranks_per_gpu);
  const int there = runtime().runtime->devices;
  if (devices.back() < there) return devices;
  return error(Code::unavailable,
               "{} ranks on this host, {} for each GPU, and there {}: did you mean --ranks-per-gpu {}?", first + ranks,
               settings.ranks_per_gpu, gpus_text(there), (first + ranks + there - 1) / there);
}

void describe_device(Device& device, int number) {
  const cuda::Runtime& cuda = *runtime().runtime;
  std::array<char, 32> bus{};
  std::vector<char> properties(cuda::kPropertiesBytes);
  device.device = number;
  if (cuda.cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), number) == cuda::kSuccess) {
    device.bus = bus.data();  // "0000:17:00.0": nccl-tests leaves the function out
    device.bus = device.bus.substr(0, device.bus.rfind('.'));
  }
  if (cuda.cudaGetDeviceProperties(properties.data(), number) == cuda::kSuccess) device.model = properties.data();
}

std::string nccl_text() {
  const auto said = describe_nccl();
  if (!said.is_ok()) return kNccl;
  return fmt::format("{} {}", said.value().value("library", kNccl), said.value().value("version", ""));
}

std::int64_t most_bytes_on_gpu(const Settings& settings, double needs, int device) {
  constexpr double kUsable = 0.9;  // the rest is for the library's own buffers
  std::size_t free = 0, total = 0;
  const cuda::Runtime& cuda = *runtime().runtime;
  if (cuda.cudaSetDevice(device) != cuda::kSuccess || cuda.cudaMemGetInfo(&free, &total) != cuda::kSuccess) {
    return settings.max_bytes;
  }
  const double share = kUsable * static_cast<double>(free) / (needs * settings.ranks_per_gpu);
  return share >= 1 ? settings.max_bytes : static_cast<std::int64_t>(share * static_cast<double>(settings.max_bytes));
}

Result<std::unique_ptr<NcclRanks>> NcclRanks::open(harness::Host& host, const std::vector<int>& devices) {
  auto ranks = std::make_unique<NcclRanks>();
  for (const int device : devices) {
    TUTTI_ASSIGN_OR_RETURN(auto memory, harness::CudaMemory::open(runtime().runtime, device));
    ranks->memory_.push_back(std::move(memory));
  }
  host.announce(harness::Activity::operation);  // the library's own code runs from here on
  TUTTI_ASSIGN_OR_RETURN(ranks->reference_, harness::ReferenceBackend::create(kNccl, backend_directories()));
  ranks->reference_->set_memory(harness::MemoryKind::cuda);
  const std::string no_directory;
  harness::Meeting meeting(host, no_directory, devices);
  TUTTI_RETURN_IF_ERROR(ranks->reference_->open(host.job_ranks(), host.ranks().front(), meeting.join()));
  host.settle();
  return ranks;
}

harness::MemorySource NcclRanks::memory() {
  return [this](const harness::Case&, std::size_t index) { return memory_[index]->allocator(); };
}

}  // namespace tutti::perf
