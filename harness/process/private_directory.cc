// SPDX-License-Identifier: Apache-2.0
#include "harness/process/private_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <utility>

namespace tutti::harness::process {
namespace {

namespace fs = std::filesystem;

std::string prefix() { return fmt::format("tutti-{}-", ::getuid()); }

Descriptor lock_directory(const std::string& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about = {};
  const bool is_mine = directory.is_open() && ::fstat(directory.get(), &about) == 0 && about.st_uid == ::getuid() &&
                       about.st_nlink > 0 && ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
  return is_mine ? std::move(directory) : Descriptor();
}

constexpr const char* kBase = "/dev/shm";

void remove_abandoned_in(const fs::path& base) {
  std::error_code failure;
  for (fs::directory_iterator entry(base, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (!entry->path().filename().string().starts_with(prefix())) continue;
    const Descriptor lock = lock_directory(entry->path().string());
    std::error_code ignored;  // another process may be removing it as well
    if (lock.is_open()) fs::remove_all(entry->path(), ignored);
  }
}

bool has_room(const fs::path& base, std::size_t bytes) {
  std::error_code failure;
  const fs::space_info space = fs::space(base, failure);
  return !failure && space.available >= bytes && ::access(base.c_str(), W_OK) == 0;
}

}  // namespace

Result<PrivateDirectory> PrivateDirectory::make(std::size_t bytes) {
  std::error_code failure;
  fs::path base = kBase;
  remove_abandoned();
  if (!has_room(base, bytes)) {
    base = fs::temp_directory_path(failure);
    if (failure) base = "/tmp";
    remove_abandoned_in(base);
  }
  for (int attempt = 0; attempt < 8; ++attempt) {  // between its making and its lock another launcher may remove it
    std::string path = (base / (prefix() + "XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) {
      return error(Code::io, "cannot make a directory in '{}': {}", base.string(), std::strerror(errno));
    }
    PrivateDirectory directory;
    directory.lock_ = lock_directory(path);
    if (!directory.lock_.is_open() || !fs::exists(path, failure)) continue;
    directory.path_ = std::move(path);
    return directory;
  }
  return error(Code::io, "cannot lock a directory in '{}'", base.string());
}

void PrivateDirectory::remove_abandoned() { remove_abandoned_in(kBase); }

PrivateDirectory::PrivateDirectory(PrivateDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

PrivateDirectory& PrivateDirectory::operator=(PrivateDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

void PrivateDirectory::remove() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  path_.clear();
  lock_.close();
}

}  // namespace tutti::harness::process
