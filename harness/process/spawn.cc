// SPDX-License-Identifier: Apache-2.0
#include "harness/process/spawn.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/process/waits.h"
#include "impl/types/descriptor.h"

extern char** environ;

namespace tutti::harness::process {
namespace {

constexpr std::string_view kSecret = "TUTTI_SECRET";

std::string_view variable_name(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (variable_name(*entry) == kSecret) continue;
    const auto same = [&](const std::string& change) { return variable_name(change) == variable_name(*entry); };
    if (std::none_of(changes.begin(), changes.end(), same)) merged.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) merged.push_back(change);
  }
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child of a process that may have threads: system calls only.
struct ChildStart {
  char** command;
  char** environment;
  pid_t parent;
  int output;
  int errors;
  int input;
  int kept;
  int report;
  int death_signal;
};

[[noreturn]] void become(const ChildStart& start) {
  ::setsid();
  if (start.death_signal != 0) ::prctl(PR_SET_PDEATHSIG, start.death_signal);
  if (::getppid() != start.parent) ::_exit(127);  // it died before it could be asked for the signal
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(start.input, STDIN_FILENO);
  ::dup2(start.output, STDOUT_FILENO);
  ::dup2(start.errors, STDERR_FILENO);
  if (start.kept >= 0) ::fcntl(start.kept, F_SETFD, 0);
  ::execvpe(start.command[0], start.command, start.environment);
  const int failure = errno;
  [[maybe_unused]] const ssize_t written = ::write(start.report, &failure, sizeof(failure));
  ::_exit(127);
}

// The pipe closes by itself when the program starts; it says why when it does not.
int wait_for_start(int report) {
  int failure = 0;
  // A child that was stopped just here gives nothing; the launcher notices that later.
  constexpr std::chrono::milliseconds kPatience(1000);
  if (!wait_readable(report, kPatience) || ::read(report, &failure, sizeof(failure)) != sizeof(failure)) return 0;
  return failure;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  std::vector<std::string> command = request.command;
  std::vector<std::string> environment = merged_environment(request.environment);
  const std::vector<char*> command_pointers = pointers_to(command);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return error(Code::resource, "cannot make a pipe: {}", std::strerror(errno));
  const Descriptor report(ends[0]);
  Descriptor report_end(ends[1]);
  const ChildStart start = {const_cast<char**>(command_pointers.data()),
                            const_cast<char**>(environment_pointers.data()),
                            ::getpid(),
                            request.output,
                            request.errors < 0 ? request.output : request.errors,
                            request.input < 0 ? nothing.get() : request.input,
                            request.kept,
                            report_end.get(),
                            request.death_signal};
  const pid_t pid = ::fork();
  if (pid < 0) return error(Code::resource, "cannot start another process: {}", std::strerror(errno));
  if (pid == 0) become(start);
  report_end.close();
  if (const int failure = wait_for_start(report.get()); failure != 0) {
    ::waitpid(pid, nullptr, 0);
    return error(Code::unavailable, "cannot execute '{}': {}", command[0], std::strerror(failure));
  }
  return pid;
}

std::string resolve_program(const std::string& program) {
  if (!program.starts_with("/proc/self/")) return program;
  std::error_code failure;
  const std::filesystem::path target = std::filesystem::read_symlink(program, failure);
  return failure ? program : target.string();
}

}  // namespace tutti::harness::process
