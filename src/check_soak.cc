// SPDX-License-Identifier: Apache-2.0
// `tutti check soak`: a seeded random mix of operations on the world and on groups, every result verified, and nothing
// left behind.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/cases/case.h"
#include "harness/cases/sweep.h"
#include "harness/launch/launch.h"
#include "harness/soak/mix.h"
#include "harness/soak/soak.h"
#include "harness/soak/traces.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using harness::SessionSpec;
using harness::SoakResult;
using harness::Traces;

struct SoakOptions {
  std::string ranks = "4", ranks_as = "processes", timeout = "60s", backends = std::string(harness::kOwnBackend);
  std::uint64_t seed = 1;
  std::int64_t operations = 10000;
  int seeds = 1;
};

class Messages final : public harness::Listener {
 public:
  void on_message(int /*rank*/, std::string_view type, std::string_view text) override {
    if (type == "soak") result = harness::soak_from_json(text);
  }
  [[nodiscard]] std::string case_name(std::uint32_t /*index*/) const override { return "the soak"; }
  std::optional<Result<SoakResult>> result;
};

std::string command_of(const SessionSpec& spec) {
  const std::string backend = spec.references.empty() ? "" : " --backends " + spec.references.front();
  return fmt::format("tutti check soak{} --ranks {} --ranks-as {} --seed {} --operations {}", backend, spec.ranks,
                     to_string(spec.ranks_as), spec.seed, spec.operations);
}

int exit_code_of(const harness::Outcome& outcome) {
  if (outcome.how == harness::Ending::interrupted) return exit_interrupted;
  if (outcome.how == harness::Ending::said_error && outcome.failure.code() == Code::mismatch) return exit_wrong;
  return outcome.how == harness::Ending::said_error ? program::exit_code_of(outcome.failure) : exit_crash;
}

/// Prints what was found, and what there is before and after.
int judge(const SessionSpec& spec, const SoakResult& result, const Traces& before, const Traces& after) {
  std::int64_t not_run = 0;
  for (const auto& [reason, count] : result.not_run) not_run += count;
  const std::string left = left_behind(before, after);
  fmt::print("{}: mix {:016x}, {} results verified, {} wrong, {} barriers judged, {} not run\n", command_of(spec),
             harness::Mix(spec.seed, spec.ranks, spec.operations).hash(), result.verified, result.wrong,
             result.barriers, not_run);
  fmt::print(
      "  before and after: {} and {} descriptors, {} and {} processes, {} and {} mappings of shared memory; new "
      "in /dev/shm: {}; in the ranks: {:+} descriptors, {:+} mappings of groups\n",
      before.descriptors, after.descriptors, before.children, after.children, before.mappings, after.mappings,
      left.find("/dev/shm") == left.npos ? "nothing" : "something", result.leaked_descriptors, result.leaked_mappings);
  std::fflush(stdout);
  for (const auto& [reason, count] : result.not_run) fmt::print("  not run: {} x {}\n", count, reason);
  if (result.wrong > 0) fmt::print("  wrong: {}\n", result.first_wrong);
  const bool leaks = !left.empty() || result.leaked_descriptors != 0 || result.leaked_mappings != 0;
  if (leaks) fmt::print("  left behind: {}\n", left.empty() ? "what is said of the ranks" : left);
  return result.wrong > 0 || leaks ? exit_wrong : exit_ok;
}

int soak_once(const SessionSpec& spec) {
  harness::Job job;
  job.ranks = spec.ranks;
  job.ranks_as = spec.ranks_as;
  job.arguments = {"rank"};
  job.payload = to_json(spec);
  job.domain_bytes = spec.ranks_as == harness::RanksAs::processes ? domain_bytes(domain_shape(spec)) : 0;
  job.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(spec.timeout);
  Messages messages;
  job.needs_mpirun = !spec.references.empty();
  const Traces before = Traces::now();
  const auto outcome = harness::launch(job, messages);
  if (!outcome.is_ok()) return complain(outcome.status());
  int code = exit_ok;
  if (!outcome.value().ok) {
    complain(outcome.value().failure);
    code = exit_code_of(outcome.value());
    if (!spec.references.empty() && !outcome.value().log_tail.empty() && code != exit_interrupted) {
      fmt::print(stderr, "last lines of the job's log:\n{}\n", outcome.value().log_tail);
    }
  } else if (!messages.result || !messages.result->is_ok()) {
    code = complain(error(Code::io, "the ranks ended without a result"));
  } else {
    code = judge(spec, messages.result->value(), before, Traces::now());
  }
  if (code != exit_ok && code != exit_interrupted) fmt::print("  to repeat it: {}\n", command_of(spec));
  return code;
}

/// What is wrong with the value of `option`.
Status mistake(std::string_view option, const Status& status) {
  return error(status.code(), "{} {}", option, status.message());
}

/// A soak for each backend, number of ranks and seed. Errors: invalid_argument, unavailable.
Result<std::vector<SessionSpec>> soaks_of(const SoakOptions& options) {
  const auto ranks = harness::parse_ranks(options.ranks);
  if (!ranks.is_ok()) return mistake("--ranks", ranks.status());
  const auto ranks_as = harness::parse_ranks_as(options.ranks_as);
  if (!ranks_as.is_ok()) return mistake("--ranks-as", ranks_as.status());
  const auto timeout = harness::parse_duration(options.timeout);
  if (!timeout.is_ok()) return mistake("--timeout", timeout.status());
  const auto backends = parse_backends(options.backends, known_backends());
  if (!backends.is_ok()) return mistake("--backends", backends.status());
  SessionSpec common;
  common.mode = SessionSpec::Mode::soak;
  common.ranks_as = ranks_as.value();
  common.timeout = timeout.value();
  common.operations = options.operations;
  common.heap_bytes = harness::kSoakHeapBytes;
  common.backend_directories = backend_directories();
  std::vector<SessionSpec> soaks;
  for (const std::string& backend : backends.value()) {
    const bool is_own = backend == harness::kOwnBackend;
    if (!is_own && common.ranks_as != harness::RanksAs::processes) {
      return error(Code::invalid_argument, "--ranks-as {}: {} runs with ranks as processes", options.ranks_as, backend);
    }
    common.references = is_own ? std::vector<std::string>() : std::vector{backend};
    for (const int count : ranks.value()) {
      common.ranks = count;
      for (int i = 0; i < options.seeds; ++i) {
        common.seed = options.seed + static_cast<std::uint64_t>(i);
        soaks.push_back(common);
      }
    }
  }
  return soaks;
}

int soak(const SoakOptions& options) {
  const auto soaks = soaks_of(options);
  if (!soaks.is_ok()) return complain(soaks.status());
  int code = exit_ok;
  for (const SessionSpec& spec : soaks.value()) {
    const int one = soak_once(spec);
    if (one == exit_interrupted) return one;
    code = std::max(code, one);
  }
  return code;
}

}  // namespace

void add_soak(CLI::App& check, Action& action) {
  CLI::App* command = check.add_subcommand("soak", "a seeded random mix of operations, on the world and on groups");
  command->footer("Example: tutti check soak --ranks 4 --seed 7 --operations 10000");
  auto options = std::make_shared<SoakOptions>();
  command->add_option("--backends", options->backends, "systems under test: tutti and the references found")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "numbers of ranks")->capture_default_str();
  command->add_option("--ranks-as", options->ranks_as, "what a rank is: processes, threads, tasks")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "the mix: the same seed gives the same operations")
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "so many mixes, from --seed on")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_option("--operations", options->operations, "how many, on all communicators together")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));  // barriers are kept until they are judged
  command->add_option("--timeout", options->timeout, "of one operation")->capture_default_str();
  command->callback([&action, options] { action = [options] { return soak(*options); }; });
}

}  // namespace tutti::program
