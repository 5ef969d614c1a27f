// SPDX-License-Identifier: Apache-2.0
// `tutti compare`: two recorded results of one machine, cell by cell.
#include "harness/gate/compare.h"

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/report/result_file.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "src/program.h"
#include "src/report.h"

namespace tutti::program {
namespace {

using harness::GateReport;
using harness::Opinion;
using harness::ResultFile;

struct CompareRequest {
  std::string other;  ///< the first file: what was
  std::string mine;   ///< the second: what is
  std::string json;
  std::string html;
  std::string fails_on;  ///< of kFailures, with commas between them
};

/// What --fail-on may name, the gravest first, and the exit code that it gives.
constexpr std::array<std::pair<std::string_view, int>, 3> kFailures{
    {{"wrong", exit_wrong}, {"slower", exit_slower}, {"missing", exit_environment}}};

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  return words;
}

/// Why `list` is none for --fail-on; empty: it is one.
std::string refusal_of(const std::string& list) {
  std::vector<std::string> names;
  for (const auto& [name, _] : kFailures) names.emplace_back(name);
  for (const std::string& word : words_of(list)) {
    if (std::ranges::find(names, word) != names.end()) continue;
    return fmt::format("'{}'{}: must be one or more of {}, with commas between them", shown(word),
                       suggestion(word, names), fmt::join(names, ", "));
  }
  return words_of(list).empty() ? "the value is empty" : "";
}

std::vector<std::string> cells_with(const GateReport& report, std::string_view failure) {
  if (failure == "wrong") return report.wrong;
  if (failure == "missing") return report.lost;
  std::vector<std::string> cells;
  for (const harness::GateCell& cell : report.cells) {
    if (cell.judgement.opinion == Opinion::slower) cells.push_back(cell.evidence.cell);
  }
  return cells;
}

/// The exit code of what was found; tells what does not pass.
int exit_code_of_comparison(const GateReport& report, const std::string& fails_on) {
  const std::vector<std::string> asked = words_of(fails_on);
  int code = exit_ok;
  for (const auto& [failure, its_code] : kFailures) {
    if (std::ranges::find(asked, failure) == asked.end()) continue;
    const std::vector<std::string> cells = cells_with(report, failure);
    if (cells.empty()) continue;
    harness::to_stderr(fmt::format("tutti: --fail-on {}: {} of '{}', the first is {}\n", failure,
                                   harness::counted(cells.size(), "cell"), report.mine, cells.front()));
    if (code == exit_ok) code = its_code;
  }
  if (report.count(Opinion::invalid) < static_cast<int>(report.cells.size()) || code != exit_ok) return code;
  return complain(error(Code::unavailable,
                        "nothing was compared: no cell of '{}' is comparable with one of '{}'; the "
                        "table has the reasons",
                        report.mine, report.other));
}

Result<ResultFile> read_rows(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(ResultFile result, harness::read_result(path));
  if (!result.rows.empty()) return result;
  return error(Code::invalid_argument, "'{}': it has no rows: name a CSV or JSON that `tutti run` wrote", path);
}

/// What the interval of launches does not cover: that one run was at another time than the other.
std::string times_text(const ResultFile& mine, const ResultFile& other) {
  const auto text = [](const ResultFile& result) {
    const std::string start = harness::start_of(result);
    return start.empty() ? "an unknown time" : start;
  };
  return fmt::format("measured one after the other, from {} and from {}: `tutti gate` measures both in turn",
                     text(other), text(mine));
}

Status write_reports(const CompareRequest& request, const GateReport& report, std::array<ResultFile, 2> sides,
                     harness::OutputFiles& files) {
  TUTTI_RETURN_IF_ERROR(files.replace(request.json, gate_json(report)));
  if (request.html.empty()) return {};
  std::vector<ResultFile> results;
  TUTTI_ASSIGN_OR_RETURN(
      results.emplace_back(),
      harness::result_from_text(request.json.empty() ? "tutti compare" : request.json, gate_json(report)));
  for (ResultFile& side : sides) results.push_back(std::move(side));
  return make_report(results, {.html = request.html, .png = {}, .svg = {}}, files);
}

/// Errors: invalid_argument for a file that cannot be written, or that is named twice.
Status open_files(const CompareRequest& request, harness::OutputFiles& opened) {
  const std::array<std::pair<harness::FileOption, const char*>, 4> named{{{{"A", request.other}, nullptr},
                                                                          {{"B", request.mine}, nullptr},
                                                                          {{"--json", request.json}, ".compare.json"},
                                                                          {{"--html", request.html}, ".html"}}};
  for (std::size_t i = 2; i < named.size(); ++i) {
    const auto& [file, ending] = named[i];
    for (std::size_t j = 0; j < i; ++j) TUTTI_RETURN_IF_ERROR(harness::check_apart(named[j].first, file, ending));
    if (file.path == harness::kStdoutPath) {
      return error(Code::invalid_argument, "{}: '-' is stdout, where the table goes: name a file", file.name);
    }
    TUTTI_RETURN_IF_ERROR(opened.open(file.path));
  }
  return {};
}

int compare(const CompareRequest& request) {
  harness::OutputFiles files;
  if (const Status status = open_files(request, files); !status.is_ok()) return complain(status);
  auto other = read_rows(request.other);
  if (!other.is_ok()) return complain(other.status());
  auto mine = read_rows(request.mine);
  if (!mine.is_ok()) return complain(mine.status());
  std::array<ResultFile, 2> sides{std::move(other).value(), std::move(mine).value()};
  if (const Status status = harness::check_one_machine(sides); !status.is_ok()) return complain(status);

  GateReport report = harness::compare_results({.name = request.mine, .rows = sides[1].rows},
                                               {.name = request.other, .rows = sides[0].rows});
  report.command = command_line();
  if (report.count(Opinion::same) < static_cast<int>(report.cells.size())) {
    report.remarks.push_back(times_text(sides[1], sides[0]));
  }
  harness::print("{}", gate_table(report));
  const int found = exit_code_of_comparison(report, request.fails_on);
  const Status written = write_reports(request, report, std::move(sides), files);
  const int code = written.is_ok() ? exit_ok : complain(written);
  if (found != exit_ok) return found;
  return written.code() == Code::aborted ? exit_interrupted : code;
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("compare", "two recorded results of one machine, cell by cell");
  command->footer(
      "Example: tutti compare a.csv b.csv, each of a run of several launches, six or more\n"
      "Ratios are time of B / time of A. Intervals and floors are those of `tutti gate`, which measures both in turn.\n"
      "Exit codes: 0 compared, whatever was found; 2 a file cannot be read; 3 nothing was compared; with --fail-on "
      "also "
      "1 a cell of B is wrong, 3 one is missing, 4 one is slower");
  auto request = std::make_shared<CompareRequest>();
  const auto refuse_nothing =
      CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, "");
  const auto add = [&](const char* flag, std::string& value, const char* type, const char* help) {
    return command->add_option(flag, value, help)->type_name(type)->check(refuse_nothing);
  };
  add("A", request->other, "FILE", "the result to compare with: CSV or JSON that a run, a check or a gate wrote")
      ->required();
  add("B", request->mine, "FILE", "the result that is judged")->required();
  add("--json", request->json, "FILE", "write what was found as JSON; `tutti report` makes a page of it");
  add("--html", request->html, "FILE", "draw one page of what was found and of both results");
  add("--fail-on", request->fails_on, "LIST",
      "slower: exit code 4 where a cell of B is; wrong: 1 where a result of B is; missing: 3 where a right result of A "
      "has none in B that is comparable")
      ->check(CLI::Validator([](std::string& text) { return refusal_of(text); }, ""));
  command->callback([&action, request] { action = [request] { return compare(*request); }; });
}

}  // namespace tutti::program
