// SPDX-License-Identifier: Apache-2.0
// `tutti compare`: two recorded results of one machine, cell by cell.
#include "harness/gate/compare.h"

#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "harness/report/result_file.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
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
  std::string fails_on;
};

constexpr const char* kSlower = "slower";

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
  fmt::print("{}", gate_table(report));
  const bool is_failing = !request.fails_on.empty() && report.count(Opinion::slower) > 0;
  const Status written = write_reports(request, report, std::move(sides), files);
  const int code = written.is_ok() ? exit_ok : complain(written);
  return is_failing ? exit_slower : code;
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("compare", "two recorded results of one machine, cell by cell");
  command->footer(
      "Example: tutti compare a.csv b.csv, each of a run of several launches, six or more\n"
      "Ratios are time of B / time of A. Intervals and floors are those of `tutti gate`, which measures both in turn.\n"
      "Exit codes: 0 compared, whatever was found; 2 a file cannot be read; 4 with --fail-on: a cell is slower");
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
  add("--fail-on", request->fails_on, "VERDICT", "slower: exit code 4 where a cell of B is")
      ->check(CLI::Validator(
          [](std::string& text) { return text == kSlower ? "" : fmt::format("'{}': must be '{}'", text, kSlower); },
          ""));
  command->callback([&action, request] { action = [request] { return compare(*request); }; });
}

}  // namespace tutti::program
