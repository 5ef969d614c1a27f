// SPDX-License-Identifier: Apache-2.0
#include "src/accept_files.h"

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/accept/exclusions.h"
#include "harness/accept/exports.h"
#include "harness/accept/junit.h"
#include "harness/text/read_file.h"
#include "impl/types/names.h"
#include "src/options.h"
#include "src/report.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;

/// Errors: invalid_argument naming the option that would write over a file that is read.
Status check_inputs(const AcceptRequest& request) {
  struct Row {
    const char* flag;
    std::string path;
  };
  const std::array inputs{Row{"--pretend", request.pretend}, Row{"--suite", request.suite},
                          Row{"--baseline", request.baseline}, Row{"--leaves", request.leaves},
                          Row{"--resume", request.resume}};
  const std::array outputs{Row{"--json", request.json},           Row{"--html", request.html},
                           Row{"--junit", request.junit},         Row{"--prometheus", request.prometheus},
                           Row{"--lines", request.lines},         Row{"--exclude", request.hosts_path()},
                           Row{"--exclude", request.slurm_path()}};
  for (const Row& output : outputs) {
    for (const Row& input : inputs) {
      std::error_code none;
      if (input.path.empty() || output.path.empty() || !std::filesystem::equivalent(output.path, input.path, none))
        continue;
      return error(Code::invalid_argument, "{}: '{}' is read, by {}: name another file", output.flag,
                   shown(output.path), input.flag);
    }
  }
  return {};
}

/// What an earlier run has left there, until it is replaced. Empty: nothing, or nothing that can be read.
std::string text_before(const std::string& path) {
  std::error_code none;
  if (path.empty() || !std::filesystem::is_regular_file(path, none)) return {};
  auto text = harness::read_file(path, harness::kMostInList);
  return text.is_ok() ? std::move(text).value() : std::string();
}

}  // namespace

Status open_files(const AcceptRequest& request, harness::OutputFiles& files) {
  TUTTI_RETURN_IF_ERROR(check_inputs(request));
  for (const std::string& path :
       {request.json, request.junit, request.prometheus, request.hosts_path(), request.slurm_path()}) {
    if (path != harness::kStdoutPath) TUTTI_RETURN_IF_ERROR(files.open(path));
  }
  if (request.html.empty()) return {};
  TUTTI_RETURN_IF_ERROR(check_report_files({.html = request.html, .png = {}, .svg = {}}, files));
  warn_without_drawing();
  return {};
}

Status write_files(const AcceptRequest& request, const accept::AcceptReport& report, harness::OutputFiles& files) {
  Status first;
  const std::string before = text_before(request.slurm_path());
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    if (path == harness::kStdoutPath) return harness::print("{}", text);
    const Status status = files.replace(path, text);
    if (first.is_ok()) first = status;
  };
  write(request.json, accept_json(report));
  write(request.junit, accept_junit(report));
  write(request.prometheus, accept_prometheus(report));
  write(request.hosts_path(), hosts_file(report, before));
  write(request.slurm_path(), slurm_file(report, request.html, before));
  if (!request.html.empty()) {
    const Status drawn = make_accept_page(accept_json(report), request.html, files);
    if (first.is_ok()) first = drawn;
  }
  return first;
}

std::string excluded_text(const AcceptRequest& request, const accept::AcceptReport& report) {
  const std::vector<std::string> names = excluded_names(report, text_before(request.slurm_path()));
  const std::string files =
      request.exclude.empty() ? "" : fmt::format(": {}, {}", request.hosts_path(), request.slurm_path());
  if (names.empty()) return files.empty() ? "" : fmt::format("# exclude: none{}\n", files);
  return fmt::format("# exclude: {}{}\n", fmt::join(names, " "), files);
}

Result<std::optional<harness::LineFile>> journal_of(const AcceptRequest& request, accept::JournalCrew& crew,
                                                    const accept::JournalHead& head) {
  if (request.resume.empty()) {
    if (request.lines.empty()) return std::optional<harness::LineFile>();
    TUTTI_ASSIGN_OR_RETURN(harness::LineFile file, of_flag("--lines", harness::LineFile::open(request.lines)));
    return std::optional<harness::LineFile>(std::move(file));
  }
  if (!request.lines.empty()) {
    return error(Code::invalid_argument, "--lines: --resume goes on with '{}'; leave --lines out",
                 shown(request.resume));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         of_flag("--resume", harness::read_file(request.resume, harness::kMostInResult)));
  const auto bytes = crew.resume(text, head);
  if (!bytes.is_ok()) {
    return error(bytes.status().code(), "--resume: '{}': {}", shown(request.resume), bytes.status().message());
  }
  std::error_code ignored;
  const auto size = std::filesystem::file_size(request.resume, ignored);
  const std::size_t mark = !ignored && size > text.size() ? size - text.size() : 0;  // of the order of bytes
  TUTTI_ASSIGN_OR_RETURN(harness::LineFile file,
                         of_flag("--resume", harness::LineFile::go_on(request.resume, mark + bytes.value())));
  return std::optional<harness::LineFile>(std::move(file));
}

}  // namespace tutti::program
