// SPDX-License-Identifier: Apache-2.0
// `tutti check`: correctness only, on the conformance cases. Every plan of tutti is proved before it runs.
#include "src/check.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cases/backend_name.h"
#include "harness/cases/conformance.h"
#include "harness/cases/topology.h"
#include "harness/machine/clock.h"
#include "harness/record/csv.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "src/jobs.h"
#include "src/join.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/request.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Row;
using harness::Verdict;

constexpr std::int64_t kMostWrongShown = 20;  ///< wrong cases told one by one

struct Tally {
  std::int64_t ok = 0;
  std::int64_t wrong = 0;
  std::int64_t errors = 0;
  std::int64_t other = 0;
  std::int64_t shown = 0;                            ///< one by one
  std::map<std::string, std::int64_t> skipped = {};  ///< of other backends than tutti, by backend and reason
};

bool is_of_tutti(std::string_view backend) { return harness::backend_of(backend) == harness::kOwnBackend; }

/// The steps of all jobs of tasks whose order a seed has drawn.
struct Steps {
  std::uint64_t count = 0;
  std::uint64_t trace = 0;

  void add(const std::string& facts_json) {
    const nlohmann::json facts = nlohmann::json::parse(facts_json, nullptr, false);
    if (!facts.is_object() || !facts.contains("order")) return;
    count += facts["order"].value("steps", std::uint64_t{0});
    trace = trace * 31 + facts["order"].value("trace", std::uint64_t{0});
  }
};

/// Brings a case back; where its order was drawn, step by step.
struct Repeat {
  const harness::SessionSpec& spec;
  std::string counts;  ///< the value of --counts, as it was typed; empty where it was not

  [[nodiscard]] std::string command(const std::string& case_id) const {
    std::string text = fmt::format("tutti check --case {}", case_id);
    const auto one = harness::parse_case_id(case_id);
    const bool needs_file = one.is_ok() && one.value().counts.pattern == harness::Pattern::file;
    if (needs_file) text += fmt::format(" --counts {}", shell_word(counts));  // an id has a file's hash only
    if (spec.order_seed() || spec.seed != harness::Sweep().seed) text += fmt::format(" --seed {}", spec.seed);
    return text + command_text(spec.conditions);
  }
};

void tell(const Row& row, const Repeat& repeat, harness::Console& console, Tally& tally) {
  if (row.verdict == Verdict::ok) {
    ++tally.ok;
    return;
  }
  ++(row.verdict == Verdict::wrong ? tally.wrong : row.verdict == Verdict::error ? tally.errors : tally.other);
  if (row.verdict == Verdict::skipped && !is_of_tutti(row.backend)) {
    ++tally.skipped[fmt::format("{}: {}", row.backend, row.reason)];
    return;
  }
  if (++tally.shown <= kMostWrongShown) {
    console.print(fmt::format("{}  {}\n  {}\n", to_string(row.verdict), row.case_id, row.reason));
    const bool has_run = row.verdict == Verdict::wrong || row.verdict == Verdict::error;
    if (has_run) console.print(fmt::format("  to repeat it: {}\n", repeat.command(row.case_id)));
  }
}

/// The sweep of the faults: every collective if none was chosen, on four ranks, sums of a dtype of each class.
int try_faults(Settings settings, const CLI::App& command) {
  for (const char* name : {"--backends", "--algorithms", "--counts", "--values", "--case", "--csv"}) {
    if (command.count(name) == 0) continue;
    return complain(error(Code::invalid_argument,
                          "{0}: has no meaning with --faults: what a fault is put into is drawn by --seed, and what "
                          "comes of it is printed; leave {0} out",
                          name));
  }
  harness::Sweep& sweep = settings.sweep;
  const bool are_all = std::ranges::all_of(all_collectives(), [&](Collective one) {
    return std::ranges::find(sweep.collectives, one) != sweep.collectives.end();
  });
  if (are_all) sweep.collectives.assign(every_collective().begin(), every_collective().end());
  if (command.count("--ranks") == 0 && settings.conditions.topology.hosts.empty()) sweep.ranks = {4};
  if (command.count("--ops") == 0) sweep.ops = {{Op::sum}, false};
  return check_faults(settings, command.count("--dtypes") > 0);
}

/// Leaves out cases on several hosts whose algorithms need the memory of all ranks. A case that was named stays, and
/// is refused in words.
Status leave_out_what_leaves_hosts(harness::Conformance& conformance, const Settings& settings) {
  if (!settings.case_id.empty()) return {};
  harness::Topologies topologies(settings.conditions, transport_directories());
  std::vector<Case> stay;
  for (Case& one : conformance.cases) {
    TUTTI_ASSIGN_OR_RETURN(const harness::Topology* const topology, topologies.of(one));
    if (!is_of_tutti(one.backend)) {
      stay.push_back(std::move(one));
      continue;
    }
    const Status stays = harness::stays_on_hosts(one, *topology);
    if (stays.code() == Code::unavailable) {
      harness::leave_out(conformance.left_out, stays.message());
    } else {
      stay.push_back(std::move(one));
    }
  }
  conformance.cases = std::move(stay);
  return {};
}

/// The systems that are checked. Errors: those of settle_backends; invalid_argument for an option that has no meaning
/// for any of them.
Status settle(Settings& settings, const CLI::App& command) {
  std::vector<std::string>& backends = settings.sweep.backends;
  if (!settings.case_id.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const Case one, harness::parse_case_id(settings.case_id));
    backends = {one.backend};
  }
  TUTTI_RETURN_IF_ERROR(settle_backends(backends, settings.sweep.ranks_as->is_process));
  if (std::ranges::any_of(backends, is_of_tutti) || command.count("--algorithms") == 0) return {};
  return error(Code::invalid_argument,
               "--algorithms: has no meaning with --backends '{}': it names tutti's; leave --algorithms out",
               fmt::join(backends, ","));
}

/// What was proved, if anything was and all of it held.
std::string proofs_text(const std::vector<std::vector<Case>>& cells, const Tally& tally) {
  const bool has_own = std::ranges::any_of(cells, [](const auto& cell) { return is_of_tutti(cell.front().backend); });
  return has_own && tally.wrong == 0 && tally.errors == 0 ? "; every plan proved before it ran" : "";
}

int check(const SweepOptions& options, const CLI::App& command) {
  auto parsed = options.settings({.known_backends = known_backends()});
  if (!parsed.is_ok()) return complain_here(parsed.status());
  if (const Joining joining = join_job(parsed.value(), false); joining.exit_code) return *joining.exit_code;
  if (!parsed.value().faults.empty()) return try_faults(std::move(parsed).value(), command);
  harness::Sweep& sweep = parsed.value().sweep;
  // Counts and forms are those of the first dtype: float, if none was chosen.
  if (sweep.dtypes.is_all) {
    std::vector<Dtype>& dtypes = sweep.dtypes.values;
    std::stable_partition(dtypes.begin(), dtypes.end(), [](Dtype dtype) { return dtype == Dtype::f32; });
  }
  if (const Status settled = settle(parsed.value(), command); !settled.is_ok()) return complain_here(settled);
  auto conformance = harness::conformance_cases(sweep);
  if (!parsed.value().case_id.empty()) {
    auto one = harness::parse_case_id(parsed.value().case_id);
    if (!one.is_ok()) return complain(one.status());
    if (const Status known = complete_counts(one.value(), sweep.counts); !known.is_ok()) return complain(known);
    sweep.ranks_as = one.value().ranks_as;
    conformance = harness::Conformance{.cases = {std::move(one).value()}};
  }
  if (!conformance.is_ok()) return complain(conformance.status());
  std::optional<harness::CsvFile> csv;
  if (!parsed.value().csv.empty()) {
    auto opened = harness::CsvFile::open(parsed.value().csv);
    if (!opened.is_ok()) return complain(opened.status());
    csv = std::move(opened).value();
  }

  if (const Status left = leave_out_what_leaves_hosts(conformance.value(), parsed.value()); !left.is_ok()) {
    return complain(left);
  }
  JobsRequest request = request_of(parsed.value());
  for (Case& one : conformance.value().cases) request.cells.push_back({std::move(one)});
  const bool draws_order = parsed.value().has_seed && sweep.ranks_as->is_one_thread();
  request.spec.task = harness::CheckTask{.order_seed = draws_order ? std::optional(sweep.seed) : std::nullopt};

  const Repeat repeat{.spec = request.spec,
                      .counts = command.count("--counts") > 0 ? command["--counts"]->as<std::string>() : ""};
  harness::Console console = console_for(parsed.value());
  Status failure;  // of the CSV
  Tally tally;
  Steps steps;
  std::string case_at_hand;
  Progress progress(0);
  const std::int64_t begin = harness::monotonic_ns();
  const int code = run_jobs(request, {.on_begin =
                                          [&](const std::vector<Case>& cell, std::size_t index, std::size_t of) {
                                            progress.begin(cell.front(), index, of);
                                            case_at_hand = case_id(cell.front());
                                          },
                                      .on_cell = [&](const std::vector<Row>& rows) -> Status {
                                        progress.clear();
                                        for (const Row& row : rows) {
                                          tell(row, repeat, console, tally);
                                          Status written = csv ? csv->write(row) : Status();
                                          if (failure.is_ok()) failure = std::move(written);
                                        }
                                        return {};
                                      },
                                      .on_facts = [&](int, const std::string& facts) { steps.add(facts); }});
  progress.clear();
  if (code != exit_ok && code != exit_interrupted && draws_order && !case_at_hand.empty()) {
    console.print(fmt::format("  to repeat it: {}\n", repeat.command(case_at_hand)));
  }
  const double seconds = static_cast<double>(harness::monotonic_ns() - begin) * 1e-9;
  const auto cases = static_cast<std::int64_t>(request.cells.size());
  const std::int64_t run = tally.ok + tally.wrong + tally.errors + tally.other;
  console.print(fmt::format("# check: {} as {}, {} ok, {} wrong, {} neither, {} not run{}; {:.1f} s\n",
                            harness::counted(cases, "case"), to_string(sweep.ranks_as), tally.ok, tally.wrong,
                            tally.errors + tally.other, std::max<std::int64_t>(0, cases - run),
                            proofs_text(request.cells, tally), seconds));
  for (const auto& [reason, rows] : tally.skipped) console.print(fmt::format("# skipped: {} x {}\n", rows, reason));
  if (draws_order && code == exit_ok) {
    console.print(
        fmt::format("# order: drawn from seed {}, {} steps, trace {:016x}: the same seed gives the same steps\n",
                    sweep.seed, steps.count, steps.trace));
  }
  for (const harness::LeftOut& item : conformance.value().left_out) {
    console.print(fmt::format("# left out: {} x {}\n", item.cells, item.reason));
  }
  int written = exit_ok;
  for (const Status& one : {failure, console.failure()}) {
    if (!one.is_ok()) written = complain(one);
  }
  if (code != exit_ok) return code;
  if (tally.wrong > 0) return exit_wrong;
  if (tally.errors > 0) return exit_crash;
  if (tally.ok > 0) return written;
  return complain(error(Code::unavailable, "nothing was checked: {}",
                        request.cells.empty() ? "no case is left, for the reasons above" : "no case was run"));
}

}  // namespace

void add_check(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("check", "correctness only: the conformance cases");
  command->footer("Example: tutti check all --ranks 1,2,3,5,8,16 --ranks-as threads");
  auto options = std::make_shared<SweepOptions>(
      *command,
      with_places(std::vector<OptionChoice>{
          {"--ranks", "1,2,3,5,8", "numbers of ranks; 1:128 is every number between"},
          {"--backends", "tutti",
           "systems to check, or all: tutti by its algorithms; others by the same cases, each with many operations on "
           "other data one after the other"},
          {"--algorithms", "all", "algorithms by name, or all"},
          {"--dtypes", "all",
           "element types; the first is that of the counts and placements, of long blocks on many ranks one of a byte"},
          {"--ops", "all", "reductions; the first is that of the counts and placements"},
          "--timeout",
          {"--counts", "equal,ramp,one-heavy,zeros,random",
           "lengths of the blocks of v forms: equal, ramp, one-heavy, zeros, random, zipf, rotating, burst, empty; or, "
           "in their place, a FILE of P counts of elements (P x P for all_to_all_v)"},
          {"--window", "1,64",
           "of bandwidth, bibandwidth and message_rate: messages in one operation, beside 3, 1 to 1024"},
          {"--values", "exact",
           "what inputs are made of: exact (every order of reduction gives the same bits; floats have one operation on "
           "special values too, where blocks have 256 to 4096 elements); random, floats that are rounded, compared "
           "within a derived bound; special: NaN, infinities, zeros, subnormals, overflow"},
          {"--seed", "1", "of inputs; where it is given with --ranks-as tasks, also of the order of the ranks' steps"},
          "--case",
          "--csv",
          "--faults"}),
      all_but_v_forms());
  add_soak(*command, action);
  add_repeat(*command, action);
  command->callback([&action, options, command] {
    if (command->get_subcommands().empty()) action = [options, command] { return check(*options, *command); };
  });
}

}  // namespace tutti::program
