// SPDX-License-Identifier: Apache-2.0
#include "harness/text/streams.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "harness/text/file.h"

namespace tutti::harness::text {
namespace {

/// SIGPIPE does not end the program while one of these lives; what it raised meanwhile is taken.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() {
    const timespec now{};
    if (!was_waiting_) {
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  bool was_waiting_ = false;
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace

void prepare_streams() {
  // Reading from stdin finds the end. For stdout it is opened to be read, so that writing fails as on a closed one.
  for (const auto& [descriptor, access] : {std::pair{0, O_RDONLY}, std::pair{1, O_RDONLY}, std::pair{2, O_WRONLY}}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(::open("/dev/null", access));  // the lowest that is free: those below are open by now
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

void to_stderr(std::string_view text) {
  const WithoutPipeSignal guard;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

Status check_stdout() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return {};
  return cannot_print(std::generic_category().message(EBADF));
}

std::optional<std::size_t> columns_of(int descriptor) {
  const char* const variable = std::getenv("COLUMNS");
  const std::string_view text(variable == nullptr ? "" : variable);
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size() && number > 0) return number;
  winsize window{};
  const bool is_known = ::isatty(descriptor) != 0 && ::ioctl(descriptor, TIOCGWINSZ, &window) == 0;
  return is_known && window.ws_col > 0 ? std::optional<std::size_t>(window.ws_col) : std::nullopt;
}

void Console::print(std::string_view text) {
  if (place_ == Place::nowhere) return;
  if (place_ == Place::to_stderr) return to_stderr(text);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!is_written && failure_.is_ok()) failure_ = cannot_print(std::generic_category().message(errno));
}

std::optional<std::size_t> Console::columns() const {
  return columns_of(place_ == Place::to_stderr ? STDERR_FILENO : STDOUT_FILENO);
}

}  // namespace tutti::harness::text
