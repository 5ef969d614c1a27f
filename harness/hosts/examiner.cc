// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/examiner.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/hosts/host_talk.h"
#include "harness/process/agent.h"
#include "harness/process/command_run.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kKillPatience = std::chrono::seconds(1);

std::size_t bytes_of(const Descriptor& file) {
  struct stat about = {};
  return ::fstat(file.get(), &about) == 0 ? static_cast<std::size_t>(about.st_size) : 0;
}

/// Its beginning, if it is longer than what a host may send.
std::string text_of(const Descriptor& file) {
  std::string text(std::min(bytes_of(file), kMostExaminedBytes), '\0');
  const ssize_t n = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

}  // namespace

Status Examiner::start(const std::vector<std::string>& command, std::string_view question) {
  TUTTI_ASSIGN_OR_RETURN(const Descriptor asked, memory_file("tutti-question"));
  TUTTI_ASSIGN_OR_RETURN(printed_, memory_file("tutti-examined"));
  const std::string line = std::string(question) + "\n";
  if (::pwrite(asked.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return error(Code::resource, "cannot fill a file in memory: {}", std::strerror(errno));
  }
  ends_ = Clock::now() + kExaminerPatience;
  TUTTI_ASSIGN_OR_RETURN(pid_, spawn({.command = command,
                                      .environment = {"TUTTI_CONTROL", "TUTTI_RANK"},
                                      .input = asked.get(),
                                      .output = printed_.get(),
                                      .death_signal = SIGTERM}));
  return {};
}

std::optional<Result<std::string>> Examiner::step() {
  if (pid_ == 0) return std::nullopt;
  int status = 0;
  const bool has_ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
  if (has_ended) pid_ = 0;
  if (bytes_of(printed_) > kMostExaminedBytes) {
    end();
    return error(Code::io, "its examiner has printed more than {} KiB", kMostExaminedBytes >> 10);
  }
  if (has_ended) {
    std::string printed = text_of(printed_);
    if (status == 0) return printed;
    const CommandRun run{.exit_code = 0, .output = std::move(printed), .errors = {}};
    return error(Code::unavailable, "its examiner {}: {}", end_of(status), shown(run.last_words()));
  }
  if (Clock::now() < ends_) return std::nullopt;
  end();
  return error(Code::timeout, "its examiner has not ended within {} s", kExaminerPatience.count());
}

void Examiner::end() {
  if (pid_ == 0) return;
  ::kill(-pid_, SIGKILL);  // it leads a session; processes that it has started get SIGTERM by its end
  nap_until(kKillPatience, [this] { return ::waitpid(pid_, nullptr, WNOHANG) != 0; });
  pid_ = 0;
}

}  // namespace tutti::harness::hosts
