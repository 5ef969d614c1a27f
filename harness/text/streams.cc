// SPDX-License-Identifier: Apache-2.0
#include "harness/text/streams.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "harness/text/outlet.h"
#include "impl/types/printable.h"

namespace tutti::harness::text {

void prepare_streams() {
  // Reading from stdin finds the end. For stdout it is opened to be read, so that writing fails as on a closed one.
  for (const auto& [descriptor, access] : {std::pair{0, O_RDONLY}, std::pair{1, O_RDONLY}, std::pair{2, O_WRONLY}}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(::open("/dev/null", access));  // the lowest that is free: those below are open by now
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

void to_stderr(std::string_view text) {
  Outlet::to_stderr().forgive();
  static_cast<void>(Outlet::to_stderr().write(printable(text)));
}

void erase_line_of_stderr() {
  Outlet::to_stderr().forgive();
  static_cast<void>(Outlet::to_stderr().write("\r\033[K"));
}

Status to_stdout(std::string_view text) {
  const bool is_before = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int failure = is_before ? Outlet::to_stdout().write(printable(text)) : errno;
  return failure == 0 ? Status() : cannot_print(std::generic_category().message(failure));
}

bool is_stderr_behind() { return Outlet::to_stderr().is_behind(); }

Status flush_output(std::optional<std::chrono::milliseconds> patience) {
  const bool is_drained = drain_outlets(patience);
  if (!is_drained) return {};
  const bool is_flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int failure = is_flushed ? Outlet::to_stdout().failure() : errno;
  return failure == 0 ? Status() : cannot_print(std::generic_category().message(failure));
}

Status cannot_print(std::string_view why) {
  return error(Code::invalid_argument, "the output cannot be written: {}", why);
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
  Status written = to_stdout(text);
  if (failure_.is_ok()) failure_ = std::move(written);
}

std::optional<std::size_t> Console::columns() const {
  return columns_of(place_ == Place::to_stderr ? STDERR_FILENO : STDOUT_FILENO);
}

}  // namespace tutti::harness::text
