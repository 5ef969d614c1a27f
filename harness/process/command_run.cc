// SPDX-License-Identifier: Apache-2.0
#include "harness/process/command_run.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "harness/process/processes.h"
#include "harness/process/spawn.h"
#include "harness/process/waits.h"

namespace tutti::harness::process {
namespace {

constexpr std::chrono::seconds kGracePeriod{5};  ///< for a program that was asked to end

/// Writes the text, and goes back to its begin.
Status fill(const Descriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error(Code::resource, "cannot fill a file in memory: {}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return {};
}

/// What a program wrote: the end of it, where it is long.
std::string text_of(const Descriptor& file) {
  constexpr off_t kMost = off_t{1} << 30;
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  off_t at = std::max<off_t>(0, end - kMost);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, end - at)), '\0');
  std::size_t taken = 0;
  while (taken < text.size()) {
    const ssize_t bytes = ::pread(file.get(), text.data() + taken, text.size() - taken, at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    taken += static_cast<std::size_t>(bytes);
    at += bytes;
  }
  text.resize(taken);
  return text;
}

/// "it is stopped (state T)", ...
std::string state_text(pid_t pid) {
  const auto info = process_info(pid);
  return info ? "it is " + describe_state(info->state) : "it is gone";
}

/// A child that is waited for, and gone when this is.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!status_) ::kill(-pid_, SIGKILL);  // its ranks end with it
    while (!status_ && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  [[nodiscard]] bool has_ended() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  /// Asks it and what it has started in its session to end, as a terminal would.
  void end() {
    ::kill(-pid_, SIGTERM);
    ::kill(-pid_, SIGCONT);  // one that is stopped takes the signal then
    nap_until(kGracePeriod, [this] { return has_ended(); });
    ::kill(-pid_, SIGKILL);  // what it has left
  }
  [[nodiscard]] int exit_code() const { return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_); }

 private:
  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace

Result<Descriptor> memory_file(const char* name) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (file.get() < 0)
    return error(Code::resource, "cannot make a file in memory: memfd_create: {}", std::strerror(errno));
  return file;
}

std::string CommandRun::last_words() const {
  // A complaint of tutti may be followed by a line for each rank, which says less.
  constexpr std::string_view kComplaint = "\ntutti: ";
  const std::string lines = "\n" + errors;
  if (const std::size_t at = lines.rfind(kComplaint); at != std::string::npos) {
    return lines.substr(at + 1, lines.find('\n', at + 1) - at - 1);
  }
  for (const std::string& text : {errors, output}) {
    const std::size_t end = text.find_last_not_of(" \n");
    if (end == std::string::npos) continue;
    const std::size_t before = text.find_last_of('\n', end);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, end - begin + 1);
  }
  return "it said nothing";
}

Result<CommandRun> run_command(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                               const Interrupts& interrupts, std::string_view input, const Delay& delay) {
  constexpr std::chrono::milliseconds kNap(10);  ///< what is measured meanwhile is left alone
  TUTTI_ASSIGN_OR_RETURN(const Descriptor output, memory_file("tutti-command-output"));
  TUTTI_ASSIGN_OR_RETURN(const Descriptor errors, memory_file("tutti-command-errors"));
  TUTTI_ASSIGN_OR_RETURN(const Descriptor said, memory_file("tutti-command-input"));
  TUTTI_RETURN_IF_ERROR(fill(said, input));
  TUTTI_ASSIGN_OR_RETURN(const pid_t pid, spawn({.command = command,
                                                 .environment = {},
                                                 .input = said.get(),
                                                 .output = output.get(),
                                                 .errors = errors.get(),
                                                 .death_signal = SIGTERM}));
  Child child(pid);
  const auto is_over = [&] { return child.has_ended() || interrupts.signal() != 0; };
  const bool tells_delay = delay.tell != nullptr && delay.after < limit;
  const bool is_late = tells_delay && !nap_until(delay.after, is_over, kNap);
  if (is_late) delay.tell(pid, state_text(pid));
  nap_until(is_late ? limit - delay.after : limit, is_over, kNap);
  if (!child.has_ended()) {
    child.end();
    if (interrupts.signal() != 0) return error(Code::aborted, "interrupted");
    return error(Code::timeout, "'{}' did not end within {:g} s", fmt::join(command, " "),
                 std::chrono::duration<double>(limit).count());
  }
  // A signal to the whole group may have ended it before this process looked.
  if (interrupts.signal() != 0) return error(Code::aborted, "interrupted");
  return CommandRun{.exit_code = child.exit_code(), .output = text_of(output), .errors = text_of(errors)};
}

}  // namespace tutti::harness::process
