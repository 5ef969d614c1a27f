// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/agent_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/process/command_run.h"

namespace tutti::harness::hosts {
namespace {

constexpr off_t kLastWords = 400;
constexpr off_t kMostHandedOn = off_t{16} << 20;

}  // namespace

Status AgentLog::open() {
  TUTTI_ASSIGN_OR_RETURN(file_, memory_file("tutti-agent-log"));
  ::fcntl(file_.get(), F_SETFL, O_APPEND);
  return {};
}

off_t AgentLog::bytes() const {
  struct stat about = {};
  return file_.is_open() && ::fstat(file_.get(), &about) == 0 ? about.st_size : 0;
}

void AgentLog::hand_on(int log) {
  const off_t end = bytes();
  while (handed_on_ < std::min(end, kMostHandedOn)) {
    std::array<char, 65536> part;
    const auto most = static_cast<std::size_t>(std::min<off_t>(std::min(end, kMostHandedOn) - handed_on_, part.size()));
    const ssize_t n = ::pread(file_.get(), part.data(), most, handed_on_);
    if (n <= 0) return;
    handed_on_ += n;
    for (std::string_view left(part.data(), static_cast<std::size_t>(n)); !left.empty();) {
      const ssize_t written = ::write(log, left.data(), left.size());
      if (written <= 0) break;  // a log that cannot be written is no reason to end a job
      left.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  // An agent, or a host, that prints without end takes no memory for it.
  if (end > kLastWords) {
    static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end - kLastWords));
  }
}

std::string AgentLog::last_words() const {
  const off_t end = bytes();
  const off_t from = std::max<off_t>(end - kLastWords, 0);
  std::string text(static_cast<std::size_t>(end - from), '\0');
  const ssize_t n = file_.is_open() ? ::pread(file_.get(), text.data(), text.size(), from) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  constexpr std::string_view kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  const std::size_t line = text.rfind('\n');
  if (line != std::string::npos) return text.substr(text.find_first_not_of(kBlanks, line));
  return from > 0 ? fmt::format("...{}", text) : text;
}

}  // namespace tutti::harness::hosts
