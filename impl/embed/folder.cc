// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "impl/types/descriptor.h"

namespace tutti::embed {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20U;  // of a value

std::string path_of(const std::string& folder, std::string key) {
  std::ranges::replace(key, '/', '.');
  return folder + "/" + key;
}

/// Written aside, so that nobody reads half of it.
Status write_value(const std::string& path, const std::string& value) {
  const std::string aside = fmt::format("{}.{}.part", path, ::getpid());
  const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool is_written =
      file.is_open() && ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
  // Unlike a rename, a link leaves the word of another rank alone.
  if (is_written && ::link(aside.c_str(), path.c_str()) == 0) {
    ::unlink(aside.c_str());
    return {};
  }
  const Status failed = error(Code::io, "cannot write {}: {}", path, std::strerror(errno));
  ::unlink(aside.c_str());
  return failed;
}

Result<std::string> read_value(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      static_cast<std::size_t>(status.st_size) > kMostBytes) {
    return error(Code::mismatch, "{} is no value of this user's rank", path);
  }
  std::string value(static_cast<std::size_t>(status.st_size), '\0');
  if (::read(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size())) return value;
  return error(Code::io, "cannot read {}: {}", path, std::strerror(errno));
}

}  // namespace

Result<Exchange> exchange_in(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return error(Code::invalid_argument, "the folder '{}': {}", folder, std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return error(Code::invalid_argument, "'{}' is no folder", folder);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return error(
        Code::invalid_argument,
        "the folder '{}' belongs to user {} and has mode {:o}: ranks meet in one that only their user may write",
        folder, status.st_uid, status.st_mode & 07777U);
  }
  Exchange exchange;
  exchange.set = [folder](const std::string& key, const std::string& value) {
    return write_value(path_of(folder, key), value);
  };
  exchange.get = [folder](const std::string& key, std::chrono::nanoseconds timeout) -> Result<std::string> {
    const std::string path = path_of(folder, key);
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (auto pause = std::chrono::microseconds(100);; pause = std::min(2 * pause, std::chrono::microseconds(5000))) {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      if (file.is_open()) return read_value(file, path);
      if (errno != ENOENT) return error(Code::io, "cannot read {}: {}", path, std::strerror(errno));
      if (std::chrono::steady_clock::now() >= end) return error(Code::timeout, "no rank has written {}", path);
      std::this_thread::sleep_for(pause);
    }
  };
  return exchange;
}

}  // namespace tutti::embed
