// SPDX-License-Identifier: Apache-2.0
// What no machine without a GPU can show: that the GPU's bits are the host's. In four parts: the arithmetic of every
// dtype and op; the inputs of the verifier; the verifier as the GPU runs it; small worlds of ranks as thread blocks,
// judged by the oracle. The last two run on teams of threads of the host too, where all they need can be tried.
#include "suites/cuda/gpu_unit.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verify/check.h"
#include "harness/verify/device_opener.h"
#include "harness/verify/inputs.h"
#include "harness/verify/oracle.h"
#include "impl/algorithms/algorithm.h"
#include "impl/communicator/blocks.h"
#include "impl/device/opener.h"
#include "impl/device/teams.h"
#include "impl/transports/local/domain.h"
#include "suites/cuda/verifier_cases.h"

namespace tutti {
namespace {

using cuda::Compared;
namespace verify = harness::verify;

constexpr int kExitOk = 0, kExitWrong = 1, kExitUsage = 2, kExitNoGpu = 3;
constexpr const char* kUsage =
    "usage: gpu_unit [--device gpu|host] [--small]\n"
    "  --device host  the verifier and small worlds on teams of threads of the host, and nothing of the GPU's\n"
    "  --small        few elements and worlds, as for compute-sanitizer\n"
    "Exit code: 0, 1 where bits differ, 2 usage, 3 where there is no GPU.\n";

struct Asked {
  bool is_on_host = false;
  bool is_small = false;
};

/// Of a world: its communicators, and memory that both the host and the device read and write.
class World {
 public:
  static Result<std::unique_ptr<World>> make(Device& device, int ranks) {
    std::unique_ptr<World> world(new World(device));
    TUTTI_ASSIGN_OR_RETURN(world->domain_, local::open_domain(local::shape_for(ranks)));
    const TeamShape blocks{.lanes = 2, .threads = device.usual_threads()};
    TUTTI_ASSIGN_OR_RETURN(world->ranks_,
                           create_as_blocks(*world->domain_, device, blocks, {.timeout = std::chrono::seconds(20)}));
    return world;
  }

  /// One operation on inputs of the verifier.
  Result<Compared> run(const verify::Operation& operation, const Schedule& schedule) {
    std::vector<Buffers> buffers;
    std::vector<Work> works;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const int rank = static_cast<int>(i);
      TUTTI_ASSIGN_OR_RETURN(auto mine, buffers_of(operation, rank));
      buffers.push_back(std::move(mine));
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Factor factor = verify::factor_element(operation.dtype, static_cast<int>(i));
      TUTTI_ASSIGN_OR_RETURN(Work work, ranks_[i]->post({.collective = operation.problem.collective,
                                                         .dtype = operation.dtype,
                                                         .op = operation.op,
                                                         .root = operation.problem.root,
                                                         .count = operation.count,
                                                         .input = buffers[i].input.get(),
                                                         .output = buffers[i].output.get(),
                                                         .factor = factor.data(),
                                                         .schedule = &schedule}));
      works.push_back(work);
    }
    for (Work& work : works) TUTTI_RETURN_IF_ERROR(work.wait());
    verify::Oracle oracle(operation);
    Compared all;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (output_blocks(operation.problem, static_cast<int>(i)) == 0) continue;
      const auto checked =
          verify_output(oracle, {.rank = static_cast<int>(i), .bytes = {buffers[i].output.get(), buffers[i].bytes}});
      all += {.elements = checked.checked,
              .wrong = checked.wrong,
              .first = checked.is_ok() ? "" : fmt::format("rank {}: {}", i, checked.text())};
    }
    return all;
  }

 private:
  struct Buffers {
    DeviceMemory input, output;
    std::size_t bytes = 0;  ///< of the output
  };
  explicit World(Device& device) : device_(device) {}

  Result<Buffers> buffers_of(const verify::Operation& operation, int rank) {
    const auto bytes = [&](Count elements) { return static_cast<std::size_t>(elements) * size_of(operation.dtype); };
    const std::size_t input = bytes(operation.input_elements(rank));
    Buffers mine{.bytes = bytes(operation.output_elements(rank))};
    TUTTI_ASSIGN_OR_RETURN(mine.input, DeviceMemory::make_mapped(device_, input));
    TUTTI_ASSIGN_OR_RETURN(mine.output, DeviceMemory::make_mapped(device_, mine.bytes));
    verify::fill_input({mine.input.get(), input}, verify::input_of(operation, rank));
    return mine;
  }

  Device& device_;
  std::unique_ptr<Domain> domain_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

Compared check_worlds(Device& device, const Asked& asked) {
  Compared all;
  const std::vector<int> worlds = asked.is_small ? std::vector{2, 3} : std::vector{1, 2, 3, 4, 5, 8};
  const std::vector<Count> counts =
      asked.is_small ? std::vector<Count>{3, 257} : std::vector<Count>{0, 1, 5, 1023, 40'000};
  for (const int ranks : worlds) {
    // Schedules must outlive the communicators.
    std::vector<std::unique_ptr<const Schedule>> schedules;
    auto world = World::make(device, ranks);
    const auto fail = [&](const std::string& what, const Status& status) {
      all += {.wrong = 1, .first = fmt::format("{}: {}", what, status.message())};
    };
    if (!world.is_ok()) {
      fail(fmt::format("{} ranks", ranks), world.status());
      continue;
    }
    for (const Algorithm* const algorithm : all_algorithms()) {
      const Problem problem{.collective = algorithm->collective, .ranks = ranks, .root = ranks - 1};
      if (!has_data(problem.collective) || has_window(problem.collective) || has_pairs(problem.collective)) continue;
      const auto& schedule =
          *schedules.emplace_back(std::make_unique<const Schedule>(schedule_of(*algorithm, problem)));
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
        for (const Count count : counts) {
          const verify::Operation operation{.problem = problem,
                                            .dtype = dtype,
                                            .op = is_reducing(problem.collective) ? Op::sum : Op::none,
                                            .count = count};
          const std::string what = fmt::format("{} {} of {} x {} on {} ranks", to_string(problem.collective),
                                               algorithm->name, count, to_string(dtype), ranks);
          const auto result = world.value()->run(operation, schedule);
          if (!result.is_ok()) {
            fail(what, result.status());
            return all;  // the world is not used again
          }
          Compared one = result.value();
          if (one.wrong > 0) one.first = what + ": " + one.first;
          all += one;
        }
      }
    }
  }
  return all;
}

int tell(const char* part, const Compared& result) {
  std::printf("%-22s %s: %lld elements, %lld wrong\n", part, result.wrong == 0 && result.elements > 0 ? "ok" : "WRONG",
              static_cast<long long>(result.elements), static_cast<long long>(result.wrong));
  if (!result.first.empty()) std::printf("  %s\n", result.first.c_str());
  std::fflush(stdout);
  return result.wrong == 0 && result.elements > 0 ? kExitOk : kExitWrong;
}

#ifdef TUTTI_HAS_DEVICE_TEXT
int check_text(const Asked& asked) {
  const int packs = asked.is_small ? 256 : 65'536;
  int code = kExitOk;
#define TUTTI_ROW(id, type, name)                                                       \
  code = std::max(code, tell("arithmetic " name, cuda::k_text_##id.arithmetic(packs))); \
  code = std::max(code, tell("inputs " name, cuda::k_text_##id.inputs(packs)));
  TUTTI_DTYPES_OF_ALL(TUTTI_ROW)
#undef TUTTI_ROW
  return code;
}
#endif

std::optional<Asked> parse(int argc, char** argv) {
  Asked asked;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--small") {
      asked.is_small = true;
    } else if (word == "--device" && i + 1 < argc &&
               (std::string_view(argv[i + 1]) == "host" || std::string_view(argv[i + 1]) == "gpu")) {
      asked.is_on_host = std::string_view(argv[++i]) == "host";
    } else {
      return std::nullopt;
    }
  }
  return asked;
}

int run(const Asked& asked) {
  if (asked.is_on_host) {
    const auto teams = make_host_teams();
    const int verifier =
        tell("verifier on the host",
             cuda::verifier_cases(*teams, verify::make_teams_runner({.teams = 3, .threads = 2}), asked.is_small));
    return std::max(verifier, tell("worlds on the host", check_worlds(*teams, asked)));
  }
#ifdef TUTTI_HAS_DEVICE_TEXT
  const std::vector<std::string> folders{std::filesystem::read_symlink("/proc/self/exe").parent_path().string()};
  auto gpu = open_gpu(folders);
  if (!gpu.is_ok()) {
    std::fprintf(stderr, "gpu_unit: %s\n", std::string(gpu.status().message()).c_str());
    return kExitNoGpu;
  }
  std::printf("gpu_unit: on the %s\n", gpu.value()->name().c_str());
  auto runner = verify::open_gpu_runner(folders, 0);
  if (!runner.is_ok() || runner.value() == nullptr) {
    std::fprintf(stderr, "gpu_unit: the GPU does not verify: %s\n", std::string(runner.status().message()).c_str());
    return kExitWrong;
  }
  int code = check_text(asked);
  code =
      std::max(code, tell("verifier", cuda::verifier_cases(*gpu.value(), std::move(runner).value(), asked.is_small)));
  return std::max(code, tell("worlds", check_worlds(*gpu.value(), asked)));
#else
  std::fprintf(stderr,
               "gpu_unit: no GPU: this build has no kernels (configure with -DTUTTI_WITH_CUDA=ON where nvcc is); %s\n",
               kInsteadOfGpu);
  return kExitNoGpu;
#endif
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  const auto asked = tutti::parse(argc, argv);
  if (!asked) {
    std::fputs(tutti::kUsage, stderr);
    return tutti::kExitUsage;
  }
  return tutti::run(*asked);
}
