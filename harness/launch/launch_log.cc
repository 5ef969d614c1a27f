// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/launch_log.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <vector>

#include <fmt/format.h>

#include "harness/process/command_run.h"

namespace tutti::harness::launch {

Status LaunchLog::open(const std::filesystem::path& path) {
  constexpr mode_t kMode = 0644;
  if (path.empty()) {
    TUTTI_ASSIGN_OR_RETURN(file_, memory_file("tutti-log"));
    ::fcntl(file_.get(), F_SETFL, O_APPEND);
  } else {
    file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode));
  }
  if (!file_.is_open()) return error(Code::io, "cannot write the log '{}': {}", path.string(), std::strerror(errno));
  struct stat about = {};
  ::fstat(file_.get(), &about);
  start_ = about.st_size;
  return Status();
}

std::string LaunchLog::text() const {
  constexpr off_t kMost = 1 << 20;
  struct stat about = {};
  if (::fstat(file_.get(), &about) != 0) return "";
  const off_t from = std::max(start_, about.st_size - kMost);
  std::string text(static_cast<std::size_t>(std::max<off_t>(about.st_size - from, 0)), '\0');
  const ssize_t n = ::pread(file_.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

namespace {

/// The lines of a log without mpirun's protocol.
std::vector<std::string> lines_for_people(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (line.find("] odls:") == std::string::npos && line.find("] local:launch") == std::string::npos)
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string LaunchLog::tail() const {
  constexpr std::size_t kLines = 20;
  const std::vector<std::string> lines = lines_for_people(text());
  const std::size_t first = lines.size() > kLines ? lines.size() - kLines : 0;
  return fmt::format("{}", fmt::join(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(), "\n"));
}

std::string LaunchLog::telling() const {
  return telling_line(fmt::format("{}", fmt::join(lines_for_people(text()), "\n")));
}

namespace {

std::string in_small_letters(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool speaks_of_failure(std::string_view line) {
  constexpr std::string_view kWords[] = {"error",     "fail",   "cannot",  "can't",        "could not", "unable",
                                         "not found", "abort",  "denied",  "no such",      "invalid",   "refused",
                                         "smashing",  "signal", "missing", "not permitted"};
  const std::string text = in_small_letters(line);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// A line of dashes or blanks, or one of a backtrace: "[host:12] [ 3] lib.so(+0x12)[0x34]".
bool is_decoration(std::string_view line) {
  const bool has_letter = std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; });
  return !has_letter || line.find(")[0x") != std::string_view::npos ||
         line.find("End of error message") != std::string_view::npos;
}

}  // namespace

std::string telling_line(std::string_view log) {
  std::string last;
  std::istringstream lines{std::string(log)};
  for (std::string line; std::getline(lines, line);) {
    if (is_decoration(line)) continue;
    if (speaks_of_failure(line)) return line;
    last = std::move(line);
  }
  return last;
}

}  // namespace tutti::harness::launch
