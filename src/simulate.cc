// SPDX-License-Identifier: Apache-2.0
// `tutti simulate`: how long the schedules of a collective take on a machine that a file describes.
#include <algorithm>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "harness/cases/sweep.h"
#include "harness/report/fastest.h"
#include "harness/simulate/forecast.h"
#include "harness/simulate/machine_file.h"
#include "harness/simulate/predictor.h"
#include "harness/text/counted.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/algorithms/added.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/machine_file.h"
#include "src/program.h"
#include "src/run_files.h"
#include "src/simulate_details.h"
#include "src/simulate_fit.h"
#include "src/simulate_table.h"

namespace tutti::program {
namespace {

namespace simulate = harness::simulate;

constexpr int kMostSimulated = 100'000;   ///< ranks, as `tutti draw` has them
constexpr std::size_t kNarrowest = 10;    ///< column of the table
constexpr std::size_t kElementBytes = 4;  ///< of a float, which `tutti run` takes unless it is given another

struct SimulateRequest {
  std::string collective;
  std::string algorithms = "all";
  std::string ranks = "8,64";
  std::string sizes = "8:16M:x8";
  std::string root = "0";
  std::string machine;
  std::string csv;
  std::string json;
  std::string svg;
  std::string table;
  std::string fit;
  std::string out;
  bool shows_path = false;
  bool shows_links = false;
};

struct Plan {
  Collective collective = Collective::all_reduce;
  std::vector<const Algorithm*> algorithms;
  std::vector<int> ranks;
  std::vector<std::int64_t> sizes;
  int root = 0;
  simulate::Machine machine;
};

Result<simulate::Machine> machine_of(const SimulateRequest& request) {
  if (request.machine.empty()) return simulate::example_machine();
  return machine_of_file(request.machine);
}

Result<std::vector<const Algorithm*>> algorithms_named(Collective collective, const std::string& text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> names, harness::split_list("algorithms", text));
  std::vector<const Algorithm*> algorithms;
  for (const std::string_view name : names) {
    if (name == harness::kAll) {
      for (const Algorithm* one : algorithms_of(collective)) harness::append_new(algorithms, one);
      continue;
    }
    if (name == harness::kAuto) {
      return error(Code::invalid_argument, "'auto' is a choice for a call, not a schedule: name algorithms, or all");
    }
    TUTTI_ASSIGN_OR_RETURN(const Algorithm* const algorithm, find_algorithm(collective, name));
    harness::append_new(algorithms, algorithm);
  }
  return algorithms;
}

/// Numbers of ranks that the machine's nodes hold without a rest.
Result<std::vector<int>> ranks_named(Collective collective, const std::string& text, const simulate::Machine& machine) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string_view> items, harness::split_list("ranks", text));
  std::vector<int> all;
  for (const std::string_view item : items) {
    TUTTI_ASSIGN_OR_RETURN(const int ranks,
                           parse_number(item, "a number of ranks", has_window(collective) ? 2 : 1, kMostSimulated));
    const int fitting = simulate::nearest_ranks(ranks, machine);
    if (fitting != ranks) {
      return error(Code::invalid_argument,
                   "'{}' ranks do not fill nodes of {} (machine {}): allowed are fewer, and multiples: did you mean "
                   "'{}'?",
                   ranks, machine.ranks_per_node, machine.name, fitting);
    }
    harness::append_new(all, ranks);
  }
  return all;
}

Result<Plan> plan_of(const SimulateRequest& request, const CLI::App& command) {
  Plan plan;
  TUTTI_ASSIGN_OR_RETURN(plan.collective, parse_collective(request.collective));
  if (has_counts(plan.collective)) {
    return error(Code::invalid_argument, "{}: blocks of different lengths are not predicted: did you mean '{}'?",
                 to_string(plan.collective), to_string(base_of(plan.collective)));
  }
  for (const auto& [flag, applies] :
       {std::pair("--root", is_rooted(plan.collective)), {"--sizes", has_data(plan.collective)}}) {
    if (applies || command.count(flag) == 0) continue;
    return error(Code::invalid_argument, "{0}: {1} has no {2}; leave {0} out", flag, to_string(plan.collective),
                 std::string_view(flag).substr(2));
  }
  TUTTI_ASSIGN_OR_RETURN(plan.machine, machine_of(request));
  TUTTI_ASSIGN_OR_RETURN(plan.algorithms,
                         of_flag("--algorithms", algorithms_named(plan.collective, request.algorithms)));
  for (const Algorithm* one : plan.algorithms) {
    if (request.table.empty() || added_problem(*one) == nullptr) continue;
    return error(Code::invalid_argument,
                 "--table: has algorithms of the library, and '{}' is one of a file: leave out one of the two",
                 one->name);
  }
  TUTTI_ASSIGN_OR_RETURN(plan.ranks, of_flag("--ranks", ranks_named(plan.collective, request.ranks, plan.machine)));
  TUTTI_ASSIGN_OR_RETURN(plan.sizes, of_flag("--sizes", harness::parse_sizes(request.sizes)));
  if (!has_data(plan.collective)) plan.sizes = {0};
  const int fewest = *std::ranges::min_element(plan.ranks);
  TUTTI_ASSIGN_OR_RETURN(plan.root, of_flag("--root", parse_number(request.root, "a rank", 0, fewest - 1)));
  return plan;
}

Problem problem_of(const Plan& plan, int ranks) {
  Problem problem{.collective = plan.collective, .ranks = ranks, .root = plan.root};
  if (has_window(plan.collective)) problem.pairing.window = kUsualWindow;
  return problem;
}

/// Microseconds for each count. Errors: as Predictor.
Result<std::vector<double>> times_of(const Algorithm& algorithm, const Problem& problem,
                                     const simulate::Machine& machine, const std::vector<Count>& counts) {
  TUTTI_ASSIGN_OR_RETURN(const simulate::Predictor predictor, simulate::Predictor::make(algorithm, problem, machine));
  std::vector<double> us;
  for (const Count count : counts) {
    TUTTI_ASSIGN_OR_RETURN(const simulate::Prediction prediction,
                           predictor.at(static_cast<double>(count) * kElementBytes));
    us.push_back(prediction.ns / 1000);
  }
  return us;
}

simulate::Forecast forecast_of(const Plan& plan, int ranks) {
  const Problem problem = problem_of(plan, ranks);
  simulate::Forecast forecast{.ranks = ranks};
  std::vector<Count> counts;
  for (const std::int64_t size : plan.sizes) harness::append_new(counts, count_for_bytes(problem, size, kElementBytes));
  for (const Count count : counts) forecast.bytes.push_back(buffer_bytes(problem, count, kElementBytes));
  simulate::Machine sound = plan.machine;
  sound.faults.clear();
  for (const Algorithm* algorithm : plan.algorithms) {
    const auto us = times_of(*algorithm, problem, plan.machine, counts);
    if (!us.is_ok()) {
      forecast.left_out.push_back(fmt::format("{}: {}", algorithm->name, us.status().message()));
      continue;
    }
    simulate::Forecast::Column column{.algorithm = std::string(algorithm->name), .us = us.value()};
    if (!plan.machine.faults.empty()) {
      const auto without = times_of(*algorithm, problem, sound, counts);
      if (without.is_ok()) column.sound_us = without.value();
    }
    forecast.columns.push_back(std::move(column));
  }
  return forecast;
}

void print_machine(const Plan& plan, bool is_example) {
  harness::print("# simulate: {}, times that a model predicts for machine {}{}; nothing is measured\n",
                 to_string(plan.collective), plan.machine.name, is_example ? ", an invented one" : "");
  if (!is_example) return;
  harness::print("# as --machine FILE would have it:\n");
  std::istringstream lines(simulate::machine_toml(plan.machine));
  for (std::string line; std::getline(lines, line);) harness::print("{}{}\n", line.empty() ? "#" : "#   ", line);
}

std::size_t width_of(const simulate::Forecast::Column& column) { return std::max(kNarrowest, column.algorithm.size()); }

/// A line for each size with `cell(column, row)` in each column, and the columns' names above.
template <class Cell>
void print_columns(const simulate::Forecast& forecast, std::string_view unit, const Cell& cell) {
  std::vector<std::string> lines{fmt::format("#{:>12}", "size"), fmt::format("#{:>12}", "(B)")};
  for (const std::int64_t bytes : forecast.bytes) lines.push_back(fmt::format("{:>13}", bytes));
  for (const simulate::Forecast::Column& column : forecast.columns) {
    lines[0] += fmt::format("  {:>{}} ", column.algorithm, width_of(column));
    lines[1] += fmt::format("  {:>{}} ", unit, width_of(column));
    for (std::size_t row = 0; row < forecast.bytes.size(); ++row)
      lines[row + 2] += fmt::format("  {:>{}}", cell(column, row), width_of(column) + 1);
  }
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    harness::print("{}\n", line);
  }
}

void print_table(const simulate::Forecast& forecast, const Plan& plan) {
  const int node = plan.machine.ranks_per_node;
  harness::print("\n# {} on {}\n", harness::counted(forecast.ranks, "rank"),
                 harness::counted(std::max(1, forecast.ranks / node), "node"));
  for (const std::string& reason : forecast.left_out) harness::print("# left out: {}\n", reason);
  if (forecast.columns.empty()) return;
  print_columns(forecast, "(us)", [&](const simulate::Forecast::Column& column, std::size_t row) {
    return us_text(column.us[row]) + (column.us[row] == forecast.best(row) ? '*' : ' ');
  });
  if (plan.machine.faults.empty()) return;
  harness::print("\n# longer than without the {} of the file\n", harness::counted(plan.machine.faults.size(), "fault"));
  print_columns(forecast, "(%)", [](const simulate::Forecast::Column& column, std::size_t row) {
    if (column.sound_us.empty()) return std::string("- ");
    return fmt::format("{:+.1f} ", 100 * (column.us[row] / column.sound_us[row] - 1));
  });
}

/// `--path` and `--links` show one time.
Status check_details(const SimulateRequest& request, const Plan& plan) {
  for (const auto& [flag, is_given] : {std::pair("--path", request.shows_path), {"--links", request.shows_links}}) {
    if (!is_given) continue;
    if (request.csv == "-")
      return error(Code::invalid_argument, "{}: has no meaning with --csv -; leave one out", flag);
    for (const auto& [what, count] : {std::pair("--algorithms", plan.algorithms.size()),
                                      {"--ranks", plan.ranks.size()},
                                      {"--sizes", plan.sizes.size()}}) {
      if (count != 1)
        return error(Code::invalid_argument, "{}: shows one time, and {} names {}: name one", flag, what, count);
    }
  }
  return {};
}

int show_details(const SimulateRequest& request, const Plan& plan) {
  const Problem problem = problem_of(plan, plan.ranks.front());
  const auto predictor = simulate::Predictor::make(*plan.algorithms.front(), problem, plan.machine);
  if (!predictor.is_ok()) return complain(predictor.status());
  const Count count = count_for_bytes(problem, plan.sizes.front(), kElementBytes);
  const double block_bytes = static_cast<double>(count) * kElementBytes;
  const auto details = predictor.value().details(block_bytes);
  if (!details.is_ok()) return complain(details.status());
  if (request.shows_path) print_path(details.value(), predictor.value(), block_bytes, plan.machine);
  if (request.shows_links) print_loads(details.value(), predictor.value(), problem.ranks);
  return exit_ok;
}

int simulate_on(const SimulateRequest& request, const CLI::App& command) {
  if (!request.fit.empty()) {
    for (const CLI::Option* option : command.get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || name == "--fit" || name == "--out") continue;
      return complain(error(Code::invalid_argument, "{0}: has no meaning with --fit; leave {0} out", name));
    }
    return fit_machine(request.fit, request.out);
  }
  if (!request.out.empty())
    return complain(error(Code::invalid_argument, "--out: is the file that --fit writes; leave it out, or name --fit"));
  if (request.collective.empty())
    return complain(error(Code::invalid_argument, "a collective is needed, or --fit RESULT.csv"));
  const auto planned = plan_of(request, command);
  if (!planned.is_ok()) return complain(planned.status());
  const Plan& plan = planned.value();
  if (const Status wrong = check_details(request, plan); !wrong.is_ok()) return complain(wrong);
  const bool is_csv_shown = request.csv == "-";
  for (const auto& [flag, path] :
       {std::pair("--json", request.json), {"--svg", request.svg}, {"--table", request.table}}) {
    if (path == "-" || (is_csv_shown && !path.empty())) {
      return complain(error(Code::invalid_argument, "{}: needs a file of its own, and the table on stdout; {}", flag,
                            path == "-" ? "name a file" : "name a file for --csv too"));
    }
  }
  harness::OutputFiles files;
  if (!is_csv_shown) {
    for (const std::string& path : {request.csv, request.json, request.svg, request.table}) {
      if (const Status opened = files.open(path); !opened.is_ok()) return complain(opened);
    }
    print_machine(plan, request.machine.empty());
  }
  std::vector<simulate::Forecast> forecasts;
  bool has_times = false;
  for (const int ranks : plan.ranks) {
    forecasts.push_back(forecast_of(plan, ranks));
    has_times |= !forecasts.back().columns.empty();
    if (!is_csv_shown) print_table(forecasts.back(), plan);
  }
  if (!has_times) return complain(error(Code::unavailable, "nothing was predicted: no algorithm is left"));
  const simulate::ForecastOf what{.collective = to_string(plan.collective),
                                  .machine = plan.machine.name,
                                  .ranks_per_node = plan.machine.ranks_per_node};
  if (is_csv_shown) {
    harness::print("{}", csv_of(forecasts, what));
    return exit_ok;
  }
  harness::print("\n# *: the fastest of its row\n");
  if (request.shows_path || request.shows_links) {
    if (const int code = show_details(request, plan); code != exit_ok) return code;
  }
  using Writer = std::string (*)(std::span<const simulate::Forecast>, const simulate::ForecastOf&);
  for (const auto& [path, written_as] : {std::pair<std::string, Writer>(request.csv, simulate::csv_of),
                                         {request.json, simulate::json_of},
                                         {request.svg, harness::fastest_svg}}) {
    if (path.empty()) continue;
    if (const Status written = files.replace(path, written_as(forecasts, what)); !written.is_ok())
      return complain(written);
  }
  if (request.table.empty()) return exit_ok;
  const auto table = of_flag("--table", table_of_forecasts(plan.collective, forecasts, plan.machine));
  if (!table.is_ok()) return complain(table.status());
  const Status written = files.replace(request.table, table.value());
  return written.is_ok() ? exit_ok : complain(written);
}

}  // namespace

void add_simulate(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("simulate", "how long schedules take on a machine that a file describes: no measurement");
  command->footer("Example: tutti simulate all_reduce --ranks 8,64,1024 --sizes 8:1M:x8");
  auto request = std::make_shared<SimulateRequest>();
  command->add_option("COLLECTIVE", request->collective, "whose schedules are walked; not with --fit")->type_name("");
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    if (!value.empty()) option->default_str(value);
  };
  add("--algorithms", request->algorithms, "LIST", "own algorithms by name, all, or FILE.xml: MSCCL's");
  command->get_option("--algorithms")->transform(CLI::Validator(add_files, ""));
  add("--ranks", request->ranks, "LIST", fmt::format("numbers of ranks, up to {}", kMostSimulated));
  add("--sizes", request->sizes, "LIST", "bytes of the larger of one rank's buffers, as in `tutti run`");
  add("--root", request->root, "RANK", "where the collective has one");
  add("--machine", request->machine, "FILE", "a machine in TOML; without it one called example, which is printed");
  add("--csv", request->csv, "FILE", "write a row for each time; - is stdout, without the table");
  add("--json", request->json, "FILE", "write the times as one JSON document");
  add("--svg", request->svg, "FILE", "draw which algorithm is the fastest by ranks and size");
  add("--table", request->table, "FILE",
      "write the fastest of each row as a selection table for --table of `tutti run`, where nothing was measured");
  add("--fit", request->fit, "FILE",
      "make a machine's file from the rows that `tutti run --csv` wrote, and say how well");
  add("--out", request->out, "FILE", "of --fit: where the machine goes (default: printed)");
  command->add_flag("--path", request->shows_path, "which steps decide a time: of one algorithm, ranks and size");
  command->add_flag("--links", request->shows_links, "how busy interfaces and links are: of one time, as --path");
  command->callback(
      [&action, request, command] { action = [request, command] { return simulate_on(*request, *command); }; });
}

}  // namespace tutti::program
