// SPDX-License-Identifier: Apache-2.0
// `tutti explain`: a small real run of one collective, for readers who have never seen it.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "harness/cases/expand.h"
#include "harness/draw/columns.h"
#include "harness/explain/page.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "harness/text/text.h"
#include "harness/verify/check.h"
#include "impl/algorithms/added.h"
#include "impl/types/number.h"
#include "src/one_algorithm.h"
#include "src/program.h"
#include "src/run_files.h"

namespace tutti::program {
namespace {

using harness::Example;
using harness::kMostExplained;
using harness::RealRun;

struct Request {
  std::string collective;
  std::string ranks = "4";
  std::string algorithm = "auto";
  std::string root = "0";
  std::string dtype = "float";
  std::string op = "sum";
};

/// What is explained, as values.
struct Subject {
  Problem problem;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  const Algorithm* algorithm = nullptr;
};

/// The schedule of a v form is that of its base.
Schedule schedule_for(const Algorithm& algorithm, Problem problem) {
  problem.collective = base_of(problem.collective);
  return schedule_of(algorithm, problem);
}

/// `its`: the problem of an algorithm of a file, or null.
Status check_file(const Problem* its, int ranks, int root) {
  if (its == nullptr) return {};
  if (its->ranks > kMostExplained) {
    return error(Code::invalid_argument, "--algorithm: the file has steps for {} ranks, and at most {} are explained",
                 its->ranks, kMostExplained);
  }
  for (const auto& [flag, value, right] : {std::tuple("--ranks", ranks, its->ranks), {"--root", root, its->root}}) {
    if (value == right) continue;
    return error(Code::invalid_argument, "{}: '{}' is not what the file has steps for: did you mean '{}'?", flag, value,
                 right);
  }
  return {};
}

Result<Subject> subject_of(const Request& request, const CLI::App& command) {
  TUTTI_ASSIGN_OR_RETURN(const Collective collective, parse_collective(request.collective));
  TUTTI_ASSIGN_OR_RETURN(int ranks,
                         of_flag("--ranks", parse_number(request.ranks, "a number of ranks", 1, kMostExplained)));
  const Algorithm* named = nullptr;
  if (request.algorithm != "auto") {
    TUTTI_ASSIGN_OR_RETURN(named, of_flag("--algorithm", find_algorithm(collective, request.algorithm)));
  }
  const Problem* const its = named == nullptr ? nullptr : added_problem(*named);
  if (its != nullptr && command.count("--ranks") == 0) ranks = its->ranks;
  TUTTI_ASSIGN_OR_RETURN(int root, of_flag("--root", parse_number(request.root, "a rank", 0, ranks - 1)));
  if (its != nullptr && command.count("--root") == 0) root = its->root;
  TUTTI_RETURN_IF_ERROR(check_file(its, ranks, root));
  for (const auto& [flag, applies] : {std::pair("--root", is_rooted(collective)),
                                      {"--op", is_reducing(collective)},
                                      {"--dtype", has_data(collective)}}) {
    if (applies || command.count(flag) == 0) continue;
    return error(Code::invalid_argument, "{0}: {1} has no {2}; leave {0} out", flag, to_string(collective),
                 std::string_view(flag).substr(2));
  }
  Subject subject{.problem = {.collective = collective, .ranks = ranks, .root = root}};
  if (has_window(collective) && ranks < 2) {
    return error(Code::invalid_argument, "--ranks: {} on {} rank has no pair: allowed are 2 to {}: did you mean '2'?",
                 to_string(collective), ranks, kMostExplained);
  }
  constexpr int kFewMessages = 3;
  if (has_window(collective)) subject.problem.pairing.window = kFewMessages;
  TUTTI_ASSIGN_OR_RETURN(subject.dtype, of_flag("--dtype", parse_dtype(request.dtype)));
  TUTTI_ASSIGN_OR_RETURN(const Op op, of_flag("--op", parse_op(request.op)));
  if (is_reducing(collective)) subject.op = op;
  if (const Status has_op = harness::check_ops({&collective, 1}, {&op, 1}); !has_op.is_ok()) {
    return error(has_op.code(), "--op: {}", has_op.message());
  }
  if (!op_exists(subject.op, subject.dtype)) {
    return error(Code::invalid_argument, "--op: {} exists for integers only, not for {}: did you mean --dtype int32?",
                 to_string(op), to_string(subject.dtype));
  }
  subject.algorithm = named != nullptr ? named : &usual_algorithm(subject.problem);
  return subject;
}

/// reduce_scatter of the all_reduce's inputs, and all_gather of what it gave.
Result<harness::Halves> run_halves(const Example& whole, const RealRun& all_reduce) {
  const int ranks = whole.problem.ranks;
  Example half = whole;
  half.shown = whole.shown / ranks;
  half.units = 1;  // whatever the algorithm deals in: only blocks are shown
  half.problem = {.collective = Collective::reduce_scatter, .ranks = ranks};
  harness::Halves halves;
  const Schedule scatter = schedule_of(usual_algorithm(half.problem), half.problem);
  TUTTI_ASSIGN_OR_RETURN(halves.reduce_scatter, run_example(half, scatter));
  for (std::size_t rank = 0; rank < half.input.size(); ++rank) {
    half.input[rank] = halves.reduce_scatter.after[rank].output;
  }
  half.problem.collective = Collective::all_gather;
  half.op = Op::none;
  half.factors.clear();
  const Schedule gather = schedule_of(usual_algorithm(half.problem), half.problem);
  TUTTI_ASSIGN_OR_RETURN(halves.all_gather, run_example(half, gather));
  halves.are_equal = halves.reduce_scatter.wrong == 0 && halves.all_gather.wrong == 0;
  for (std::size_t rank = 0; rank < half.input.size(); ++rank) {
    halves.are_equal &= halves.all_gather.after[rank].output == all_reduce.after[rank].output;
  }
  return halves;
}

/// Nothing of one rank alone: nothing travels.
std::string picture_of(const Schedule& schedule) {
  const auto story = harness::story_of(schedule);
  if (!story.is_ok() || story.value().transfers.empty()) return {};
  return fmt::format("\nThe same as a picture (as SVG: tutti draw)\n{}", columns_text(story.value()));
}

int verdict(Count checked, Count wrong, const std::string& first_wrong) {
  if (wrong == 0) {
    harness::print(
        "\nverified: {} element{} of the outputs, bit for bit what the oracle says (a straight loop in rank order); "
        "ok\n",
        checked, checked == 1 ? "" : "s");
    return exit_ok;
  }
  harness::print("\nWRONG: {} of {}; {}\n", wrong, harness::counted(checked, "element"), first_wrong);
  return exit_wrong;
}

int explain_data(const Subject& subject) {
  const auto example = harness::example_of(*subject.algorithm, subject.problem, subject.dtype, subject.op);
  if (!example.is_ok()) return complain(example.status());
  const Schedule schedule = schedule_for(*subject.algorithm, subject.problem);
  const auto told = harness::replay(schedule, example.value());
  if (!told.is_ok()) return complain(told.status());
  auto run = harness::run_example(example.value(), schedule);
  if (!run.is_ok()) return complain(run.status());
  RealRun& real = run.value();
  harness::print("{}{}{}", introduction(example.value(), real),
                 steps_page(*subject.algorithm, schedule, example.value(), told.value()) + picture_of(schedule),
                 result_page(example.value(), real));
  for (std::size_t rank = 0; rank < real.after.size(); ++rank) {
    if (told.value().output[rank] == real.after[rank].output) continue;
    ++real.wrong;
    real.first_wrong = fmt::format("the steps above give rank {} another output", rank);
  }
  if (subject.problem.collective == Collective::all_reduce) {
    const auto halves = run_halves(example.value(), real);
    if (!halves.is_ok()) return complain(halves.status());
    harness::print("{}", halves_page(halves.value()));
    if (!halves.value().are_equal) {
      ++real.wrong;
      real.first_wrong = "reduce_scatter and all_gather give something else";
    }
  }
  return verdict(real.checked, real.wrong, real.first_wrong);
}

int explain_barrier(const Subject& subject) {
  using namespace std::chrono_literals;
  const Schedule schedule = schedule_of(*subject.algorithm, subject.problem);
  const Example nothing{.problem = subject.problem};
  const auto told = harness::replay(schedule, nothing);
  if (!told.is_ok()) return complain(told.status());
  harness::print("barrier on {} rank{}\n\n  {}", subject.problem.ranks, subject.problem.ranks == 1 ? "" : "s",
                 harness::wrapped(harness::meaning_of(Collective::barrier), 2));
  harness::print("{}\nRank r sleeps r tenths of a second, then it enters:\n",
                 steps_page(*subject.algorithm, schedule, nothing, told.value()) + picture_of(schedule));
  std::fflush(stdout);
  const auto run = harness::run_barrier(schedule, 100ms);
  if (!run.is_ok()) return complain(run.status());
  harness::print("{}", harness::barrier_page(run.value()));
  const harness::CheckResult check = harness::check_barrier({.first_leave_ns = std::ranges::min(run.value().leaves_ns),
                                                             .last_enter_ns = std::ranges::max(run.value().enters_ns)});
  if (!check.is_ok()) {
    harness::print("\nWRONG: {}\n", check.diagnosis);
    return exit_wrong;
  }
  harness::print("\nverified: the first rank left after the last one had entered; ok\n");
  return exit_ok;
}

int explain(const Request& request, const CLI::App& command) {
  const auto subject = subject_of(request, command);
  if (!subject.is_ok()) return complain(subject.status());
  return has_data(subject.value().problem.collective) ? explain_data(subject.value())
                                                      : explain_barrier(subject.value());
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("explain", "one collective, step by step: a small real run");
  command->footer("Example: tutti explain all_reduce --ranks 4");
  auto request = std::make_shared<Request>();
  command->add_option("COLLECTIVE", request->collective, "what is explained")->type_name("")->required();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    command->add_option(flag, value, help)->type_name(type)->default_str(value);
  };
  add("--ranks", request->ranks, "N", fmt::format("number of ranks, at most {}", kMostExplained));
  add("--algorithm", request->algorithm, "NAME", "an own algorithm by name, auto, or FILE.xml: MSCCL's");
  command->get_option("--algorithm")->transform(CLI::Validator(add_files, ""));
  add("--root", request->root, "RANK", "where the collective has one");
  add("--dtype", request->dtype, "NAME", "type of an element");
  add("--op", request->op, "NAME", "reduction, where the collective reduces");
  command->callback(
      [&action, request, command] { action = [request, command] { return explain(*request, *command); }; });
}

}  // namespace tutti::program
