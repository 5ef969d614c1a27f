// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/meeting_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "impl/types/descriptor.h"

namespace tutti::harness::hosts {
namespace {

constexpr std::size_t kMostAddress = 512;  // bytes

Status cannot(const std::string& path, const char* what) {
  return error(Code::io, "--init: cannot {} '{}': {}", what, path, std::strerror(errno));
}

}  // namespace

MeetingFile::~MeetingFile() {
  if (written_.empty()) return;
  const auto now = read();
  if (now.is_ok() && now.value() == written_) ::unlink(path_.c_str());
}

Status MeetingFile::write(const std::string& address) {
  std::string aside = path_ + ".XXXXXX";
  const Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));
  if (!file.is_open()) return cannot(path_, "write");
  const std::string line = address + "\n";
  const ssize_t n = ::write(file.get(), line.data(), line.size());
  if (n == static_cast<ssize_t>(line.size()) && std::rename(aside.c_str(), path_.c_str()) == 0) {
    written_ = address;
    return {};
  }
  const Status why = cannot(path_, "write");
  ::unlink(aside.c_str());
  return why;
}

Result<std::string> MeetingFile::read() const {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return errno == ENOENT ? Result<std::string>(std::string()) : cannot(path_, "read");
  struct stat about = {};
  if (::fstat(file.get(), &about) != 0) return cannot(path_, "read");
  if (!S_ISREG(about.st_mode)) return error(Code::io, "--init: '{}' is no regular file", path_);
  if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    return error(
        Code::unavailable,
        "--init: '{}' belongs to user {}, and this process to user {}: who writes it decides where this process "
        "connects",
        path_, about.st_uid, ::geteuid());
  }
  std::array<char, kMostAddress> bytes;
  const ssize_t n = ::read(file.get(), bytes.data(), bytes.size());
  if (n < 0) return cannot(path_, "read");
  const std::string text(bytes.data(), static_cast<std::size_t>(n));
  const std::size_t end = text.find('\n');
  if (end == std::string::npos && text.size() == kMostAddress)
    return error(Code::io, "--init: '{}' does not begin with a line of at most {} bytes", path_, kMostAddress);
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

}  // namespace tutti::harness::hosts
