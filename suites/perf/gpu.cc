// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/gpu.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "harness/backends/loader.h"
#include "harness/session/meeting.h"
#include "harness/verify/device_opener.h"
#include "impl/cuda/runtime.h"
#include "impl/device/opener.h"

namespace tutti::perf {
namespace {

/// Lets ranks share a GPU, in versions of NCCL that know it.
constexpr const char* kSharedGpuVariable = "NCCL_MULTI_RANK_GPU_ENABLE";
constexpr const char* kFirstGpuVariable = "NCCL_TESTS_DEVICE";
constexpr int kUsualCtas = 16;  // of -V

std::vector<std::string> backend_directories() { return harness::directories_named_by("TUTTI_BACKENDS"); }
/// Of libtutti_device_cuda.so.
std::vector<std::string> kernel_directories() { return harness::directories_named_by("TUTTI_TRANSPORTS"); }

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

/// 2.28 of "2.28.9" as 2 and 28, and so on.
struct Version {
  int major = 0, minor = 0, patch = 0;
};
Version version_of(const nlohmann::json& said) {
  Version version;
  const std::string text = said.value("version", "");
  std::sscanf(text.c_str(), "%d.%d.%d", &version.major, &version.minor, &version.patch);
  return version;
}

Status out_of_range(char letter, int value, std::string_view range) {
  return error(Code::invalid_argument, "-{} {}: must be {}", letter, value, range);
}

/// Errors: unavailable: this version of NCCL has no symmetric windows.
Status check_windows() {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json said, describe_nccl());
  if (said.value("symmetric_windows", "no") == "yes") return {};
  return error(Code::unavailable, "-R 2: NCCL {} has no symmetric windows: 2.27 is the first; -R 1 registers buffers",
               said.value("version", ""));
}

/// -x: how much of a GPU NCCL takes. Errors: unavailable: this version of NCCL has no such policy.
Status set_policy(int value) {
  if (value < 1 || value > 2) return out_of_range('x', value, "0 (the default), 1 (efficiency) or 2 (zero CTAs)");
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json said, describe_nccl());
  const Version version = version_of(said);
  const int first_minor = 26 + value;  // 2.27 has the first of them, 2.28 the second
  if (version.major == 2 && version.minor < first_minor) {
    return error(Code::unavailable, "-x {}: NCCL {} has no such policy: 2.{} is the first", value,
                 said.value("version", ""), first_minor);
  }
  ::setenv("NCCL_CTA_POLICY", std::to_string(value).c_str(), 1);
  return {};
}

/// Errors: unavailable: this version of NCCL has one rank on a GPU.
Status let_ranks_share(int ranks_per_gpu) {
  constexpr int kFirstMinor = 30;
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json said, describe_nccl());
  const Version version = version_of(said);
  if (version.major == 2 && version.minor < kFirstMinor) {
    return error(Code::unavailable, "--ranks-per-gpu {}: NCCL {} has one rank on each GPU: 2.{} is the first with more",
                 ranks_per_gpu, said.value("version", ""), kFirstMinor);
  }
  ::setenv(kSharedGpuVariable, "1", 0);
  return {};
}

/// What a flag that has a meaning on GPUs alone means there. Errors: invalid_argument.
Status apply(char letter, int value, Settings& settings) {
  switch (letter) {
    case 'V':
      if (value == kUsualCtas) return {};
      [[fallthrough]];
    case 'D':
      return error(Code::invalid_argument, "-{} {}: NCCL's device API is not measured: leave it out", letter, value);
    case 'G':
      if (value < 0) return out_of_range(letter, value, "a whole number from 0, how often a graph is launched");
      settings.launches = value;
      return {};
    case 'R':
      if (value < 1 || value > kWindows) {
        return out_of_range(letter, value, "0, 1 (registered buffers) or 2 (symmetric windows)");
      }
      settings.registration = value;
      return value == kWindows ? check_windows() : Status();
    case 'x':
      return set_policy(value);
    default:
      if (value != 1) return out_of_range(letter, value, "0 or 1");
      settings.notes.push_back(
          letter == 'y' ? "-y 1 is left aside: operations have streams of their own"
                        : "-p 1 is left aside: the ranks of a process make their communicators in one group");
      return {};
  }
}

/// Flags that contradict each other where there are graphs. Errors: invalid_argument.
Status check_graphs(const Settings& settings) {
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
  return {};
}

/// And with NCCL. Errors: invalid_argument.
Status check_on_gpus(const Settings& settings) {
  if (settings.times_each && settings.skipped >= settings.iterations) {
    return error(Code::invalid_argument, "-K {} skips the times of all {} groups of -m {}: did you mean '-K {}'?",
                 settings.skipped, settings.iterations, settings.aggregated, settings.iterations - 1);
  }
  return {};
}

std::string gpus_text(int count) { return count == 1 ? "is 1 GPU" : fmt::format("are {} GPUs", count); }

}  // namespace

Status settle_backend(Settings& settings, const Program& program) {
  const bool is_asked = settings.backend == kNccl;
  if (program.is_hypercube && is_asked) {
    return error(
        Code::invalid_argument,
        "--backend nccl: NCCL has no hypercube; all_gather_perf measures its all_gather: did you mean --backend "
        "tutti?");
  }
  if (settings.device && is_asked) {
    return error(
        Code::invalid_argument,
        "--device {}: has no meaning with --backend nccl, whose ranks are no thread blocks: did you mean --backend "
        "tutti?",
        to_string(*settings.device));
  }
  if (program.is_hypercube || settings.device) settings.backend = "tutti";
  if (settings.backend.empty() || is_asked) {
    // The library, of some 200 MB, is not loaded where there is no GPU.
    Status usable = cuda_runtime().runtime != nullptr
                        ? describe_nccl().status()
                        : error(Code::unavailable, "backend nccl: {}", cuda_runtime().why);
    if (is_asked) TUTTI_RETURN_IF_ERROR(usable);
    settings.backend = usable.is_ok() ? kNccl : "tutti";
    const bool expects_gpus = cuda_runtime().runtime != nullptr || !cuda_runtime().is_without_gpu;
    if (!usable.is_ok() && expects_gpus) {
      settings.notes.push_back(
          fmt::format("CPU ranks of tutti are measured, since NCCL cannot be: {}", usable.message()));
    }
  }
  const bool is_nccl = settings.backend == kNccl;
  for (const auto& [letter, value] : settings.of_gpus) {
    const bool is_of_blocks = letter == 'G' || letter == 'D' || letter == 'V';
    if (!is_nccl && !(settings.device && is_of_blocks)) {
      settings.notes.push_back(fmt::format("-{} {} has no meaning {}: left aside", letter, value,
                                           settings.device ? "for thread blocks" : "on CPU ranks"));
    } else {
      TUTTI_RETURN_IF_ERROR(apply(letter, value, settings));
    }
  }
  TUTTI_RETURN_IF_ERROR(check_graphs(settings));
  if (is_nccl) TUTTI_RETURN_IF_ERROR(check_on_gpus(settings));
  if (settings.ranks_per_gpu == 1 || settings.device) return {};
  if (!is_nccl) {
    return error(Code::invalid_argument, "--ranks-per-gpu {}: has no meaning on CPU ranks; leave it out",
                 settings.ranks_per_gpu);
  }
  return let_ranks_share(settings.ranks_per_gpu);
}

Status take_first_device(Settings& settings, int processes) {
  const char* const text = std::getenv(kFirstGpuVariable);
  if (text == nullptr || *text == '\0') return {};
  if (!has_gpu_memory(settings)) {
    settings.notes.push_back(fmt::format("{}={} has no meaning on CPUs: left aside", kFirstGpuVariable, text));
    return {};
  }
  if (cuda_runtime().runtime == nullptr) return {};  // devices_of says why
  const int there = cuda_runtime().runtime->devices;
  const std::string_view all(text);
  int first = 0;
  const auto [stop, failure] = std::from_chars(all.data(), all.data() + all.size(), first);
  if (failure != std::errc() || stop != all.data() + all.size() || first < 0 || first >= there) {
    return error(Code::invalid_argument, "{} is '{}': it must be a number from 0 to {}, of the first GPU",
                 kFirstGpuVariable, text, there - 1);
  }
  if (settings.device && first != 0) {
    return error(Code::invalid_argument,
                 "{}={}: thread blocks have the GPUs from 0 on: leave it out, or hide GPUs by CUDA_VISIBLE_DEVICES",
                 kFirstGpuVariable, text);
  }
  if (processes > 1) {
    return error(Code::invalid_argument,
                 "{}={}: {} processes have their GPUs by their own numbers: leave it out, or hide GPUs by "
                 "CUDA_VISIBLE_DEVICES",
                 kFirstGpuVariable, text, processes);
  }
  settings.first_device = first;
  return {};
}

Result<std::vector<int>> devices_of(const Settings& settings, int first, int ranks) {
  std::vector<int> devices;
  for (int rank = first; rank < first + ranks; ++rank) devices.push_back(device_of(settings, rank));
  if (cuda_runtime().runtime == nullptr) return error(Code::unavailable, "{}; {}", cuda_runtime().why, kInsteadOfGpu);
  const int there = cuda_runtime().runtime->devices;
  if (devices.back() < there) return devices;
  const int left = there - settings.first_device;
  return error(Code::unavailable,
               "{} ranks on this host, {} for each GPU, and there {}{}: did you mean --ranks-per-gpu {}?",
               first + ranks, settings.ranks_per_gpu, gpus_text(left),
               settings.first_device == 0 ? "" : fmt::format(" from GPU {} on", settings.first_device),
               (first + ranks + left - 1) / left);
}

void describe_device(Device& device, int number) {
  const cuda::Runtime& cuda = *cuda_runtime().runtime;
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

std::string nccl_description() {
  const auto said = describe_nccl();
  return said.is_ok() ? said.value().dump() : "";
}

int nccl_version() {
  const auto said = describe_nccl();
  if (!said.is_ok()) return 0;
  const Version version = version_of(said.value());
  return 10000 * version.major + 100 * version.minor + version.patch;
}

void set_patience(const Settings& settings) {
  ::setenv("TUTTI_NCCL_TIMEOUT", std::to_string(settings.timeout_s).c_str(), 0);
}

std::int64_t most_bytes_on_gpu(const Settings& settings, double needs, int device) {
  constexpr double kUsable = 0.9;  // the rest is for the library's own buffers
  const std::size_t free = free_bytes(device);
  if (free == 0) return settings.max_bytes;
  const double share = kUsable * static_cast<double>(free) / (needs * settings.ranks_per_gpu);
  return share >= 1 ? settings.max_bytes : static_cast<std::int64_t>(share * static_cast<double>(settings.max_bytes));
}

Result<std::unique_ptr<NcclRanks>> NcclRanks::open(harness::Runner& runner, const Options& options) {
  const std::vector<int>& devices = options.devices;
  auto ranks = std::make_unique<NcclRanks>();
  std::map<int, std::shared_ptr<const harness::DeviceVerifier>> verifiers;  // ranks of one GPU are verified together
  for (const int device : devices) {
    ranks->taken_.begin(device);
    TUTTI_ASSIGN_OR_RETURN(auto memory, harness::CudaMemory::open(cuda_runtime().runtime, device));
    if (!verifiers.contains(device)) verifiers[device] = harness::gpu_verifier(kernel_directories(), device);
    memory->set_verifier(verifiers[device]);
    ranks->memory_.push_back(std::move(memory));
  }
  runner.announce(harness::Activity::operation);  // the library's own code runs from here on
  TUTTI_ASSIGN_OR_RETURN(ranks->reference_, harness::ReferenceBackend::create(kNccl, backend_directories()));
  ranks->reference_->set_memory(harness::MemoryKind::cuda);
  const std::string one_host;
  TUTTI_RETURN_IF_ERROR(harness::Meeting(runner, one_host, devices).open(*ranks->reference_, options.first_rank));
  ranks->has_windows_ = options.registration == kWindows;
  if (ranks->has_windows_) ranks->reference_->use_windows();
  if (options.has_groups) TUTTI_RETURN_IF_ERROR(ranks->reference_->enter_group(runner.group(), options.first_rank));
  runner.settle();
  ranks->taken_.set_opened();
  return ranks;
}

harness::MemorySource NcclRanks::memory() {
  return [this](const harness::Case& one, std::size_t index) {
    harness::Allocator allocator = memory_[index]->allocator();
    if (!has_windows_) return allocator;
    const auto local = static_cast<int>(index);
    allocator.allocate = [this, one, local](std::size_t bytes) { return reference_->allocate(one, local, bytes); };
    // What cannot be given back is given back with the process.
    allocator.release = [this, local](void* memory) {
      static_cast<void>(reference_->give_back(local, memory).is_ok());
    };
    return allocator;
  };
}

}  // namespace tutti::perf
