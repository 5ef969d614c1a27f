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
  std::string ranks = "4", ranks_as = "processes", timeout = "60s";
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
  return fmt::format("tutti check soak --ranks {} --ranks-as {} --seed {} --operations {}", spec.ranks,
                     to_string(spec.ranks_as), spec.seed, spec.operations);
}

int exit_code_of(const harness::Outcome& outcome) {
  if (outcome.how == harness::Ending::interrupted) return exit_interrupted;
  if (outcome.how == harness::Ending::said_error && outcome.failure.code() == Code::mismatch) return exit_wrong;
  return outcome.how == harness::Ending::said_error ? program::exit_code_of(outcome.failure) : exit_crash;
}

/// Prints what was found, and what there is before and after.
int judge(const SessionSpec& spec, const SoakResult& result, const Traces& before, const Traces& after) {
  const std::string left = left_behind(before, after);
  fmt::print("{}: mix {:016x}, {} results verified, {} wrong, {} barriers judged\n", command_of(spec),
             harness::Mix(spec.seed, spec.ranks, spec.operations).hash(), result.verified, result.wrong,
             result.barriers);
  fmt::print(
      "  before and after: {} and {} descriptors, {} and {} processes, {} and {} mappings of shared memory; new "
      "in /dev/shm: {}; in the ranks: {:+} descriptors, {:+} mappings of groups\n",
      before.descriptors, after.descriptors, before.children, after.children, before.mappings, after.mappings,
      left.find("/dev/shm") == left.npos ? "nothing" : "something", result.leaked_descriptors, result.leaked_mappings);
  std::fflush(stdout);
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
  const Traces before = Traces::now();
  const auto outcome = harness::launch(job, messages);
  if (!outcome.is_ok()) return complain(outcome.status());
  int code = exit_ok;
  if (!outcome.value().ok) {
    complain(outcome.value().failure);
    code = exit_code_of(outcome.value());
  } else if (!messages.result || !messages.result->is_ok()) {
    code = complain(error(Code::io, "the ranks ended without a result"));
  } else {
    code = judge(spec, messages.result->value(), before, Traces::now());
  }
  if (code != exit_ok && code != exit_interrupted) fmt::print("  to repeat it: {}\n", command_of(spec));
  return code;
}

int soak(const SoakOptions& options) {
  const auto ranks = harness::parse_ranks(options.ranks);
  if (!ranks.is_ok()) return complain(error(Code::invalid_argument, "--ranks {}", ranks.status().message()));
  const auto ranks_as = harness::parse_ranks_as(options.ranks_as);
  if (!ranks_as.is_ok()) return complain(error(Code::invalid_argument, "--ranks-as {}", ranks_as.status().message()));
  const auto timeout = harness::parse_duration(options.timeout);
  if (!timeout.is_ok()) return complain(error(Code::invalid_argument, "--timeout {}", timeout.status().message()));
  int code = exit_ok;
  for (const int count : ranks.value()) {
    for (int i = 0; i < options.seeds; ++i) {
      SessionSpec spec;
      spec.mode = SessionSpec::Mode::soak;
      spec.ranks = count;
      spec.ranks_as = ranks_as.value();
      spec.seed = options.seed + static_cast<std::uint64_t>(i);
      spec.timeout = timeout.value();
      spec.operations = options.operations;
      spec.heap_bytes = harness::kSoakHeapBytes;
      const int one = soak_once(spec);
      if (one == exit_interrupted) return one;
      code = std::max(code, one);
    }
  }
  return code;
}

}  // namespace

void add_soak(CLI::App& check, Action& action) {
  CLI::App* command = check.add_subcommand("soak", "a seeded random mix of operations, on the world and on groups");
  command->footer("Example: tutti check soak --ranks 4 --seed 7 --operations 10000");
  auto options = std::make_shared<SoakOptions>();
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
