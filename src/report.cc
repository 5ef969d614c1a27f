// SPDX-License-Identifier: Apache-2.0
// `tutti report`: pictures and tables of results as one page, or as files of their own.
#include "src/report.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/process/command_run.h"
#include "harness/machine/clock.h"
#include "harness/process/interrupts.h"
#include "harness/process/spawn.h"
#include "harness/report/bundle.h"
#include "harness/report/exports.h"
#include "harness/text/file_place.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "src/program.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kDrawingLimit{4};  ///< for the pictures of a large result
constexpr std::chrono::minutes kAskingLimit{1};   ///< for what a Python has

/// Says after ten seconds that a Python keeps the user waiting.
harness::Delay delay_of(const std::string& python, std::chrono::minutes limit) {
  constexpr std::chrono::seconds kQuiet{10};
  return {
      .after = kQuiet, .tell = [=](pid_t pid, const std::string& state) {
        harness::to_stderr(fmt::format("tutti: '{}' (process {}) has run for {} s, {}: it is ended after {} s\n",
                                       shown(python), pid, kQuiet.count(), state, std::chrono::seconds(limit).count()));
      }};
}

/// The folder of the program's texts: beside it in the build folder and in an installed tree alike.
Result<std::string> drawing_script() {
  const fs::path program = harness::resolve_program("/proc/self/exe");
  const fs::path script = program.parent_path().parent_path() / "share/tutti/scripts/report/report.py";
  std::error_code ignored;
  if (fs::exists(script, ignored)) return script.string();
  return error(Code::unavailable, "what draws pictures is not there: '{}'; `cmake --install` brings it",
               script.string());
}

/// The words that start a Python apart from the user's settings, packages and folder.
std::vector<std::string> words_for(const std::string& python, std::vector<std::string> more) {
  std::vector<std::string> words{python, "-I", "-B"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Why a Python cannot draw; empty: it can. Errors: aborted where interrupted.
Result<std::string> what_python_lacks(const std::string& python, const harness::Interrupts& interrupts) {
  constexpr int kLacksPackages = 3;
  constexpr const char* kAsk =
      "import importlib.util, sys\n"
      "missing = [name for name in ('matplotlib', 'numpy', 'jinja2') if importlib.util.find_spec(name) is None]\n"
      "print(' and '.join(missing))\n"
      "sys.exit(3 if missing else 0)";
  const auto answer = harness::run_command(words_for(python, {"-c", kAsk}), kAskingLimit, interrupts, {},
                                           delay_of(python, kAskingLimit));
  if (answer.status().code() == Code::aborted) return answer.status();
  if (!answer.is_ok()) return answer.status().message();
  const harness::CommandRun& run = answer.value();
  if (run.exit_code == exit_ok) return std::string();
  if (run.exit_code == kLacksPackages) return fmt::format("'{} -I' has no {}", shown(python), shown(run.last_words()));
  return fmt::format("'{} -I' ended with exit code {}: {}", shown(python), run.exit_code, shown(run.last_words()));
}

struct Drawing {
  std::string python;
  std::string script;
};

Result<Drawing> find_drawing(const harness::Interrupts& interrupts) {
  Drawing drawing;
  TUTTI_ASSIGN_OR_RETURN(drawing.script, drawing_script());
  const char* const named = std::getenv("TUTTI_PYTHON");
  const bool is_named = named != nullptr && *named != '\0';
  const std::vector<std::string> candidates =
      is_named ? std::vector<std::string>{named} : std::vector<std::string>{"python3", "/usr/bin/python3"};
  std::vector<std::string> reasons;
  for (const std::string& python : candidates) {
    TUTTI_ASSIGN_OR_RETURN(std::string lack, what_python_lacks(python, interrupts));
    drawing.python = python;
    if (lack.empty()) return drawing;
    reasons.push_back(std::move(lack));
  }
  return error(Code::unavailable,
               "pictures need Python 3 with matplotlib, numpy and jinja2 (apt-get install python3-matplotlib "
               "python3-jinja2): {}{}",
               is_named ? "TUTTI_PYTHON: " : "", fmt::join(reasons, "; "));
}

harness::BundleInfo info_now() {
  const std::string version = version_text();
  return {.made_by = version.substr(0, version.find('\n')), .made = harness::utc_now()};
}

/// The script prints the page, which is then written as all other outputs are.
Status draw(const std::string& bundle, const ReportFiles& files, harness::OutputFiles& opened) {
  harness::Interrupts interrupts;
  interrupts.forget();  // what was measured before an interruption is drawn
  TUTTI_ASSIGN_OR_RETURN(const Drawing drawing, find_drawing(interrupts));
  std::vector<std::string> command = words_for(drawing.python, {drawing.script});
  if (!files.html.empty()) command.insert(command.end(), {"--html", "-"});
  for (const auto& [flag, path] : {std::pair{"--png", files.png}, std::pair{"--svg", files.svg}}) {
    if (!path.empty()) command.insert(command.end(), {flag, path});
  }
  TUTTI_ASSIGN_OR_RETURN(const harness::CommandRun run, harness::run_command(command, kDrawingLimit, interrupts, bundle,
                                                                             delay_of(drawing.python, kDrawingLimit)));
  if (run.exit_code == exit_ok) return opened.replace(files.html, run.output);
  const std::string words = run.last_words();
  if (run.exit_code == exit_usage) return error(Code::invalid_argument, "{}", words);
  if (run.exit_code == exit_environment) return error(Code::unavailable, "{}", words);
  harness::to_stderr(run.errors);
  return error(Code::resource, "'{}' ended with exit code {}: {}", drawing.script, run.exit_code, words);
}

/// The same; an interruption while it draws is told as such.
Status draw_or_tell(const std::string& bundle, const ReportFiles& files, harness::OutputFiles& opened) {
  const Status drawn = draw(bundle, files, opened);
  return drawn.code() == Code::aborted ? error(Code::aborted, "not drawn: interrupted") : drawn;
}

/// The forms of other programs that --format names.
struct Format {
  std::string_view name;
  std::string (*text_of)(std::span<const harness::Row>);
};
constexpr std::array kFormats{Format{"bencher", harness::bencher_of},
                              Format{"github", harness::github_action_benchmark_of}};

/// In the forms of other programs; what is empty is not made.
struct Exports {
  std::string prometheus;  ///< a file
  std::string format;      ///< of stdout

  [[nodiscard]] bool is_empty() const { return prometheus.empty() && format.empty(); }
};

struct ReportRequest {
  std::vector<std::string> results;
  std::string history;
  ReportFiles files;
  Exports exports;
};

bool has_files(const ReportFiles& files) { return !files.html.empty() || !files.png.empty() || !files.svg.empty(); }

/// The result files in a folder, by name. Where a run left a CSV and a JSON of one name, the JSON says more.
Result<std::vector<std::string>> results_in(const std::string& folder) {
  std::error_code failure;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const fs::path& path = at->path();
    if (path.extension() == ".json" || path.extension() == ".csv") paths.push_back(path);
  }
  if (failure) return error(Code::invalid_argument, "--history: cannot read '{}': {}", folder, failure.message());
  std::ranges::sort(paths);
  std::vector<std::string> results;
  for (fs::path path : paths) {
    const bool is_said_better = path.extension() == ".csv" && fs::exists(fs::path(path).replace_extension(".json"));
    if (!is_said_better) results.push_back(path.string());
  }
  if (!results.empty()) return results;
  return error(Code::invalid_argument, "--history: '{}' has no .json and no .csv: name a folder of results", folder);
}

/// One damaged file of many costs itself only.
Status report_history(const ReportRequest& request, harness::OutputFiles& opened) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> paths, results_in(request.history));
  std::vector<harness::ResultFile> results;
  std::vector<std::string> left_out;
  for (const std::string& path : paths) {
    auto result = harness::read_result(path);
    if (!result.is_ok()) {
      left_out.push_back(fmt::format("left out: {}", result.status().message()));
      harness::to_stderr(fmt::format("tutti: {}\n", left_out.back()));
    } else if (result.value().kind == harness::ResultFile::Kind::rows) {
      results.push_back(std::move(result).value());
    }
  }
  if (results.empty()) return error(Code::invalid_argument, "--history: '{}' has no result", request.history);
  return draw_or_tell(harness::history_bundle_of(std::move(results), info_now(), std::move(left_out)), request.files,
                      opened);
}

Status write_exports(const Exports& exports, std::span<const harness::ResultFile> results,
                     harness::OutputFiles& opened) {
  std::vector<harness::Row> rows;
  for (const harness::ResultFile& result : results) {
    for (harness::Row& row : harness::rows_for_export(result)) rows.push_back(std::move(row));
  }
  const bool has_format = !exports.format.empty();
  if (!exports.is_empty() && (rows.empty() || (has_format && std::ranges::none_of(rows, harness::has_time)))) {
    return error(Code::unavailable, "'{}': nothing was measured: no row of it has a time for {}", results.front().file,
                 has_format ? "--format" : "--prometheus");
  }
  if (has_format) harness::print("{}", std::ranges::find(kFormats, exports.format, &Format::name)->text_of(rows));
  return opened.replace(exports.prometheus, harness::prometheus_of(rows));
}

Status report_results(const ReportRequest& request, harness::OutputFiles& opened) {
  std::vector<harness::ResultFile> results;
  for (const std::string& path : request.results) {
    TUTTI_ASSIGN_OR_RETURN(harness::ResultFile result, harness::read_result(path));
    results.push_back(std::move(result));
  }
  const auto is_empty = [](const harness::ResultFile& result) {
    return result.kind != harness::ResultFile::Kind::judged && result.rows.empty() && result.samples.empty();
  };
  if (std::ranges::all_of(results, is_empty)) {
    return error(Code::invalid_argument, "'{}': it has no rows: there is nothing to show", results.front().file);
  }
  TUTTI_RETURN_IF_ERROR(harness::check_one_machine(results));
  TUTTI_RETURN_IF_ERROR(write_exports(request.exports, results, opened));
  return has_files(request.files) ? make_report(results, request.files, opened) : Status();
}

int report(const ReportRequest& request) {
  const ReportFiles& files = request.files;
  if (!request.results.empty() && !request.history.empty()) {
    return complain(error(Code::invalid_argument,
                          "--history: has no meaning beside the file '{}': it takes the results of its folder",
                          request.results.front()));
  }
  if (request.results.empty() && request.history.empty()) {
    return complain(error(Code::invalid_argument,
                          "either RESULT... (a JSON or CSV that `tutti run --json FILE` wrote) or --history DIR is "
                          "needed"));
  }
  const Exports& exports = request.exports;
  if (!has_files(files) && exports.is_empty()) {
    return complain(error(Code::invalid_argument,
                          "nothing to write: name --html FILE, --png DIR, --svg DIR, "
                          "--prometheus FILE or --format NAME"));
  }
  if (!request.history.empty() && !exports.is_empty()) {
    return complain(error(Code::invalid_argument,
                          "--history: has no meaning with --prometheus and --format, which take one result"));
  }
  if (!exports.format.empty() && std::ranges::find(kFormats, exports.format, &Format::name) == kFormats.end()) {
    std::vector<std::string> names;
    for (const Format& format : kFormats) names.emplace_back(format.name);
    const Status unknown = unknown_name("format", exports.format, names);
    return complain(error(unknown.code(), "--format: {}", unknown.message()));
  }
  harness::OutputFiles opened;
  if (const Status status = opened.open(exports.prometheus); !status.is_ok()) return complain(status);
  if (const Status status = check_report_files(files, opened); !status.is_ok()) return complain(status);
  const Status made = request.history.empty() ? report_results(request, opened) : report_history(request, opened);
  if (!made.is_ok()) {
    const int code = complain(made);
    return made.code() == Code::aborted ? exit_interrupted : code;
  }
  for (const std::string& path : {files.html, files.png, files.svg, exports.prometheus}) {
    if (path.empty()) continue;
    exports.format.empty() ? harness::print("{}\n", path) : harness::to_stderr(path + "\n");
  }
  return exit_ok;
}

}  // namespace

Status make_accept_page(const std::string& document, const std::string& html, harness::OutputFiles& opened) {
  return draw_or_tell(document, {.html = html, .png = {}, .svg = {}}, opened);
}

void warn_without_drawing() {
  int interrupted = 0;
  Status status;
  {
    const harness::Interrupts interrupts;
    status = find_drawing(interrupts).status();
    interrupted = interrupts.signal();
  }
  if (interrupted != 0) std::raise(interrupted);  // nothing is measured yet
  if (!status.is_ok()) complain(error(status.code(), "--html: there will be no page: {}", status.message()));
}

Status check_report_files(const ReportFiles& files, harness::OutputFiles& opened) {
  if (files.html == harness::kStdoutPath) {
    return error(Code::invalid_argument, "--html: '-' is stdout: name a file");
  }
  TUTTI_RETURN_IF_ERROR(opened.open(files.html));
  for (const std::string& folder : {files.png, files.svg}) {
    if (folder.empty()) continue;
    // What is there of the way is judged before a folder is made beyond it.
    fs::path known = fs::absolute(folder);
    std::error_code ignored;
    while (!fs::exists(known, ignored) && !fs::is_symlink(known, ignored)) known = known.parent_path();
    if (fs::is_directory(known, ignored)) {
      TUTTI_RETURN_IF_ERROR(harness::FilePlace::of((known / "picture").string()).status());
    }
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure) return error(Code::invalid_argument, "cannot make the folder '{}': {}", folder, failure.message());
  }
  return {};
}

Status make_report(std::span<const harness::ResultFile> results, const ReportFiles& files,
                   harness::OutputFiles& opened) {
  TUTTI_RETURN_IF_ERROR(harness::check_one_machine(results));
  return draw_or_tell(harness::bundle_of(results, info_now()), files, opened);
}

void add_report(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("report", "pictures and tables of results as one page");
  command->footer(
      "Example: tutti report out.json out.samples.csv --html out.html --png pictures\n"
      "Pictures are drawn by Python 3 with matplotlib and jinja2: TUTTI_PYTHON names another than python3");
  auto request = std::make_shared<ReportRequest>();
  const auto refuse_nothing =
      CLI::Validator([](std::string& text) { return text.empty() ? "the value is empty" : ""; }, "");
  const auto add = [&](const char* flag, auto& value, const char* type, const char* help) {
    command->add_option(flag, value, help)->type_name(type)->check(refuse_nothing);
  };
  add("RESULT", request->results, "FILE...",
      "JSON or CSV that a run, a check, a gate or a comparison wrote, and CSV of samples; of one machine");
  add("--html", request->files.html, "FILE", "one page that needs no other file and no network");
  add("--png", request->files.png, "DIR", "each picture as a file");
  add("--svg", request->files.svg, "DIR", "each picture as a file");
  add("--prometheus", request->exports.prometheus, "FILE", "metrics as text, with the names of NCCL's Inspector");
  add("--format", request->exports.format, "NAME",
      "prints the JSON of another program: bencher (Bencher Metric Format), or github (github-action-benchmark, "
      "customSmallerIsBetter)");
  add("--history", request->history, "DIR",
      "in place of RESULT: a folder of results of one machine; what changed from when on");
  command->callback([&action, request] { action = [request] { return report(*request); }; });
}

}  // namespace tutti::program
