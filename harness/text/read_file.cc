// SPDX-License-Identifier: Apache-2.0
#include "harness/text/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "impl/types/descriptor.h"
#include "impl/types/names.h"

namespace tutti::harness::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

template <class... Args>
Status refused(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  return error(Code::invalid_argument, "cannot read '{}': {}", shown(path),
               fmt::format(format, std::forward<Args>(args)...));
}

Status failed(const std::string& path, int error_number) {
  return refused(path, "{}", std::generic_category().message(error_number));
}

/// "1 MiB", "1.5 GiB"
std::string size_text(std::size_t bytes) {
  constexpr std::size_t kKibi = 1024;
  constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < kKibi) return fmt::format("{} bytes", bytes);
  double number = static_cast<double>(bytes) / kKibi;
  std::size_t unit = 0;
  for (; number >= kKibi && unit + 1 < kUnits.size(); ++unit) number /= kKibi;
  return fmt::format("{:.4g} {}", number, kUnits[unit]);
}

/// Waits for bytes, or for the end. False: neither came. A pipe that no process has opened to write has neither.
bool has_come(int file, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{.fd = file, .events = POLLIN, .revents = 0};
    const int found = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

/// That the bytes which have come are of a text.
Status check_text(const std::string& path, std::string_view text, std::size_t from) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return refused(path, "it is UTF-16: save it as UTF-8");
  }
  const std::size_t zero = text.find('\0', from);
  return zero == text.npos ? Status() : refused(path, "it is no text: its byte {} is 0", zero + 1);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most, std::chrono::milliseconds patience) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about = {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) return failed(path, errno);
  const bool is_regular = S_ISREG(about.st_mode);
  const auto size = static_cast<std::size_t>(std::max<off_t>(about.st_size, 0));
  if (is_regular && size > most)
    return refused(path, "it has {}, at most {} are read", size_text(size), size_text(most));
  std::string text;
  std::array<char, 65536> part{};
  while (text.size() <= most) {
    if (!is_regular && !has_come(file.get(), patience)) {
      return refused(path, "nothing came from it for {:g} s", std::chrono::duration<double>(patience).count());
    }
    const ssize_t bytes = ::read(file.get(), part.data(), std::min(part.size(), most + 1 - text.size()));
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0) return failed(path, errno);
    if (bytes == 0) {
      if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
      return text;
    }
    text.append(part.data(), static_cast<std::size_t>(bytes));
    TUTTI_RETURN_IF_ERROR(check_text(path, text, text.size() - static_cast<std::size_t>(bytes)));
  }
  return refused(path, "it has more than {}", size_text(most));
}

}  // namespace tutti::harness::text
