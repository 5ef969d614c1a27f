// SPDX-License-Identifier: Apache-2.0
// `tutti check soak`: a seeded random mix of operations on the world and on groups, every result verified, and nothing
// left behind.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/cases/case.h"
#include "harness/launch/launch.h"
#include "harness/machine/clock.h"
#include "harness/soak/mix.h"
#include "harness/soak/soak.h"
#include "harness/soak/traces.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "src/failed_start.h"
#include "src/jobs.h"
#include "src/join.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/request.h"
#include "src/session_messages.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::SessionSpec;
using harness::SoakResult;
using harness::Traces;

/// What all mixes came to.
struct SoakTally {
  std::size_t mixes = 0;  ///< that there are
  std::size_t begun = 0;
  std::size_t right = 0;
  std::size_t wrong = 0;  ///< a result, or something left behind
  std::int64_t verified = 0;
  std::int64_t wrong_results = 0;
};

std::int64_t operations_of(const SessionSpec& spec) { return spec.as<harness::SoakTask>()->operations; }

class SoakMessages final : public SessionMessages {
 public:
  SoakMessages(const SessionSpec& spec, const SoakTally& tally, Progress& progress)
      : SessionMessages(spec, {{"soak", [this](std::string_view text) { result = harness::soak_from_json(text); }},
                               {"soaked", [this](std::string_view text) { show(text); }}}),
        tally_(tally),
        progress_(progress) {}
  [[nodiscard]] std::string case_name(std::uint32_t /*index*/) const override {
    return spec_.references.empty() ? "the soak" : "the soak of " + spec_.references.front();
  }
  std::optional<Result<SoakResult>> result;
  harness::SoakProgress so_far;
  bool has_begun = false;  ///< the ranks are at work

 private:
  void show(std::string_view text) {
    has_begun = true;
    const auto told = harness::soak_progress_from_json(text);
    if (!told.is_ok()) return;
    so_far = told.value();
    const double share = static_cast<double>(so_far.posted) / static_cast<double>(operations_of(spec_));
    progress_.show(
        fmt::format("[{}/{}] mix of seed {}, P={}: {} of {}, {} wrong", tally_.begun, tally_.mixes, spec_.seed,
                    spec_.ranks, so_far.posted, harness::counted(operations_of(spec_), "operation"), so_far.wrong),
        (static_cast<double>(tally_.begun - 1) + share) / static_cast<double>(tally_.mixes));
  }

  const SoakTally& tally_;
  Progress& progress_;
};

/// Tasks take turns if no --seed is given.
std::string command_of(const SessionSpec& spec) {
  const std::string backend = spec.references.empty() ? "" : " --backends " + spec.references.front();
  const bool takes_turns = spec.ranks_as->is_one_thread() && !spec.order_seed();
  const bool is_usual = spec.transport == harness::usual_transport(spec.ranks_as);
  const std::string transport = is_usual ? "" : " --transports " + spec.transport;
  return fmt::format("tutti check soak{} --ranks {} --ranks-as {}{}{}{} --operations {}", backend, spec.ranks,
                     to_string(spec.ranks_as), command_text(spec.conditions), transport,
                     takes_turns ? "" : fmt::format(" --seed {}", spec.seed), operations_of(spec));
}

int exit_code_of_soak(const harness::Outcome& outcome) {
  const bool differs = outcome.how == harness::Ending::said_error && outcome.failure.code() == Code::mismatch;
  return differs ? exit_wrong : exit_code_of(outcome);
}

/// Prints what was found, and what there is before and after.
int judge(const SessionSpec& spec, const SoakResult& result, const Traces& before, const Traces& after) {
  std::int64_t not_run = 0;
  for (const auto& [reason, count] : result.not_run) not_run += count;
  const std::string left = left_behind(before, after);
  harness::print("{}: mix {:016x}, {} verified, {} wrong, {} judged, {} not run\n", command_of(spec),
                 harness::Mix(spec.seed, spec.ranks, operations_of(spec)).hash(),
                 harness::counted(result.verified, "result"), result.wrong,
                 harness::counted(result.barriers, "barrier"), not_run);
  harness::print("  up to {} in flight on one rank, waited for in random order\n",
                 harness::counted(result.most_in_flight, "operation"));
  harness::print(
      "  before and after: {} and {} descriptors, {} and {} processes, {} and {} mappings of shared memory; new "
      "in /dev/shm: {}; in the ranks: {:+} descriptors, {:+} mappings of groups\n",
      before.descriptors, after.descriptors, before.children, after.children, before.mappings, after.mappings,
      left.find("/dev/shm") == left.npos ? "nothing" : "something", result.leaked_descriptors, result.leaked_mappings);
  if (spec.order_seed()) {
    harness::print("  order drawn from seed {}: {} steps, trace {:016x}\n", *spec.order_seed(), result.steps,
                   result.trace);
  }
  for (const auto& [reason, count] : result.not_run) harness::print("  not run: {} x {}\n", count, reason);
  if (result.wrong > 0) harness::print("  wrong: {}\n", result.first_wrong);
  const bool leaks = !left.empty() || result.leaked_descriptors != 0 || result.leaked_mappings != 0;
  if (leaks) harness::print("  left behind: {}\n", left.empty() ? "what is said of the ranks" : left);
  if (result.wrong > 0 || leaks) return exit_wrong;
  if (result.verified + result.barriers > 0) return exit_ok;
  return complain(error(Code::unavailable, "nothing was verified: no operation was run"));
}

/// Prints that the reference of a mix cannot be started, which is an error if it was named. The mix is not run.
int leave_out(const SessionSpec& spec, const std::string& why, bool is_named, SoakTally& tally) {
  --tally.begun;
  const std::string& name = spec.references.front();
  const Status status = error(Code::unavailable, "ranks of backend {} cannot be started here: {}", name, why);
  if (is_named) return complain(status);
  harness::to_stderr(fmt::format("# without {}: {}\n", name, status.message()));
  return exit_ok;
}

int soak_once(const SessionSpec& spec, const Settings& settings, Progress& progress, SoakTally& tally) {
  const Reach& reach = settings.reach;
  ++tally.begun;
  SoakMessages messages(spec, tally, progress);
  const Result<Starter> starter =
      spec.references.empty() ? Result<Starter>(Starter()) : starter_of(spec.references.front());
  if (!starter.is_ok()) return complain(starter.status());
  const Traces before = Traces::now();
  const auto topology = harness::topology_of(spec);
  if (!topology.is_ok()) return complain(topology.status());
  harness::PlacedJob job = job_of(spec, topology.value(), starter.value(), reach);
  if (reach.joined != nullptr) {
    job.tell = [&progress](const Status& why) {
      progress.clear();
      complain(why);
    };
  }
  const auto outcome = harness::launch_placed(job, messages);
  progress.clear();
  if (!outcome.is_ok()) return complain(outcome.status());
  int code = exit_ok;
  const bool is_at_the_start = !outcome.value().ok && !messages.has_begun && reach.joined == nullptr;
  if (is_at_the_start && !not_started(spec, starter.value(), outcome.value()).empty()) {
    return leave_out(spec, why_not_started(outcome.value()), settings.are_backends_named, tally);
  }
  if (!outcome.value().ok) {
    const char* const where = spec.ranks_as->ranks_of_runner == 0 ? "" : " by rank 0";
    harness::print("{}: broken off after {} of {}, {} verified{}, {} wrong\n", command_of(spec), messages.so_far.posted,
                   harness::counted(operations_of(spec), "operation"),
                   harness::counted(messages.so_far.verified, "result"), where, messages.so_far.wrong);
    tally.verified += messages.so_far.verified;
    tally.wrong_results += messages.so_far.wrong;
    if (!outcome.value().is_told) complain(outcome.value().failure);
    code = exit_code_of_soak(outcome.value());
    if (!spec.references.empty() && !outcome.value().log_tail.empty() && code != exit_interrupted) {
      harness::to_stderr(fmt::format("last lines of the job's log:\n{}\n", outcome.value().log_tail));
    }
  } else if (!messages.result || !messages.result->is_ok()) {
    code = complain(error(Code::io, "the ranks ended without a result"));
  } else {
    const SoakResult& result = messages.result->value();
    code = judge(spec, result, before, Traces::now());
    ++(code == exit_ok ? tally.right : tally.wrong);
    tally.verified += result.verified;
    tally.wrong_results += result.wrong;
  }
  if (code != exit_ok && code != exit_interrupted) harness::print("  to repeat it: {}\n", command_of(spec));
  return code;
}

/// A soak for each backend, number of ranks and seed. Errors: invalid_argument, unavailable.
Result<std::vector<SessionSpec>> soaks_of(Settings& settings) {
  harness::Sweep& sweep = settings.sweep;
  const bool as_processes = sweep.ranks_as->is_process;
  TUTTI_RETURN_IF_ERROR(settle_across_hosts(sweep, settings.conditions));
  TUTTI_RETURN_IF_ERROR(settle_backends(sweep.backends, as_processes));
  SessionSpec common = session_of(settings);
  common.heap_bytes = harness::kSoakHeapBytes;
  std::vector<std::pair<int, std::string>> places;
  for (const int count : sweep.ranks) {
    for (const std::string& transport : transports_of(sweep)) places.emplace_back(count, transport);
  }
  std::vector<SessionSpec> soaks;
  for (const std::string& backend : sweep.backends) {
    if (harness::instance_of(backend) != backend) {
      return error(Code::invalid_argument, "--backends: a soak compares nothing: name '{}' once",
                   harness::instance_of(backend));
    }
    const bool is_own = backend == harness::kOwnBackend;
    if (!is_own && !as_processes) {
      return error(Code::invalid_argument, "--ranks-as: {} runs with ranks as processes only, not as {}", backend,
                   to_string(sweep.ranks_as));
    }
    common.references = is_own ? std::vector<std::string>() : std::vector{backend};
    for (const auto& [count, transport] : places) {
      common.ranks = count;
      set_transport(transport, common);
      for (int i = 0; i < settings.seeds; ++i) {
        common.seed = sweep.seed + static_cast<std::uint64_t>(i);
        const bool draws_order = settings.has_seed && common.ranks_as->is_one_thread();
        common.task = harness::SoakTask{.operations = settings.operations,
                                        .order_seed = draws_order ? std::optional(common.seed) : std::nullopt};
        soaks.push_back(common);
      }
    }
  }
  return soaks;
}

int soak(const SweepOptions& options) {
  auto settings = options.settings({.known_backends = known_backends()});
  if (!settings.is_ok()) return complain_here(settings.status());
  if (const Joining joining = join_job(settings.value(), false); joining.exit_code) return *joining.exit_code;
  const auto soaks = soaks_of(settings.value());
  if (!soaks.is_ok()) return complain(soaks.status());
  const Reach& reach = settings.value().reach;
  if (reach.joined != nullptr && soaks.value().size() > 1) {
    return complain(error(Code::invalid_argument,
                          "the ranks were started for one mix, and there are {}: name one backend and one seed",
                          soaks.value().size()));
  }
  const std::int64_t begin = harness::monotonic_ns();
  Progress progress(0);
  SoakTally tally{.mixes = soaks.value().size()};
  int code = exit_ok;
  for (const SessionSpec& spec : soaks.value()) {
    const int one = soak_once(spec, settings.value(), progress, tally);
    code = one == exit_interrupted ? one : std::max(code, one);
    if (one == exit_interrupted) break;
  }
  harness::print("# soak: {}, {} ok, {} wrong, {} broken off, {} not run; {} verified, {} wrong; {:.1f} s\n",
                 harness::counted(tally.mixes, "mix", "es"), tally.right, tally.wrong,
                 tally.begun - tally.right - tally.wrong, tally.mixes - tally.begun,
                 harness::counted(tally.verified, "result"), tally.wrong_results,
                 static_cast<double>(harness::monotonic_ns() - begin) * 1e-9);
  return code;
}

}  // namespace

void add_soak(CLI::App& check, Action& action) {
  CLI::App* command = check.add_subcommand("soak", "a seeded random mix of operations, on the world and on groups");
  command->footer("Example: tutti check soak --ranks 4 --seed 7 --operations 10000");
  auto options = std::make_shared<SweepOptions>(
      *command,
      with_places(std::vector<OptionChoice>{{"--backends", harness::kOwnBackend},
                                            {"--ranks", "4", "numbers of ranks; 1:8 is every number between"},
                                            {"--seed", "1",
                                             "of the mix: the same seed gives the same operations; 1:200 is that many "
                                             "mixes; with --ranks-as tasks also of "
                                             "the order of the ranks' steps, which otherwise take turns"},
                                            "--operations",
                                            "--table",
                                            "--timeout"}),
      std::span<const Collective>());
  command->callback([&check, &action, options] {
    action = [&check, options] {
      for (const CLI::Option* option : check.get_options()) {
        if (option->count() == 0) continue;
        return complain(
            error(Code::invalid_argument,
                  "`tutti check {0} ... soak`: {0} is of the conformance cases; a soak's options come after "
                  "`soak`, and it takes no collectives",
                  option->get_name()));
      }
      return soak(*options);
    };
  });
}

}  // namespace tutti::program
