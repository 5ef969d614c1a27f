// SPDX-License-Identifier: Apache-2.0
#include "harness/text/file_place.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <deque>
#include <fcntl.h>
#include <linux/magic.h>
#include <optional>
#include <random>
#include <string_view>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <climits>

#include "harness/text/file.h"
#include "impl/types/names.h"

namespace tutti::harness::text {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kModeOfNewFiles = 0666;  // less what the user's mask takes away

std::deque<std::string> names_in(std::string_view path) {
  std::deque<std::string> names;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    names.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

bool is_of_proc(const Descriptor& folder) {
  struct statfs about {};
  return ::fstatfs(folder.get(), &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

/// Empty if the link, which is open, cannot be read.
std::string target_of(const Descriptor& link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(link.get(), "", text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// Whether other users may have put things into a folder.
bool is_of_others(const struct stat& folder) {
  return (folder.st_uid != ::geteuid() && folder.st_uid != 0) || (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/// The number of this process's descriptor for which /proc has the link `name` in `folder`.
std::optional<int> own_descriptor(const Descriptor& folder, const std::string& name) {
  struct stat here {
  }, own{};
  const bool is_own = ::fstat(folder.get(), &here) == 0 && ::stat("/proc/self/fd", &own) == 0 &&
                      here.st_dev == own.st_dev && here.st_ino == own.st_ino;
  int number = -1;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  return is_own && failure == std::errc() && *end == '\0' ? std::optional(number) : std::nullopt;
}

/// Walks a path name by name, so that each link is seen before it is followed.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path), names_(names_in(path)) {}

  /// Ends with the folder and the name of what is no link.
  [[nodiscard]] Status go() {
    folder_ = Descriptor(::open(path_.starts_with('/') ? "/" : ".", kFolder));
    if (!folder_.is_open()) return cannot_write(path_, errno);
    while (true) {
      name_ = names_.front().empty() ? "." : names_.front();
      names_.pop_front();
      struct stat about {};
      const bool is_there = ::fstatat(folder_.get(), name_.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
      if (!is_there && (errno != ENOENT || !names_.empty())) return cannot_write(path_, errno);
      const bool is_link = is_there && S_ISLNK(about.st_mode);
      if (is_link && !is_of_proc(folder_)) {
        TUTTI_RETURN_IF_ERROR(follow());
      } else if (names_.empty()) {
        is_by_kernel_ = is_link;
        return {};
      } else {
        TUTTI_RETURN_IF_ERROR(enter(is_link ? 0 : O_NOFOLLOW));
      }
    }
  }

  Descriptor folder_;
  std::string name_;
  bool is_by_kernel_ = false;

 private:
  Status enter(int flags) {
    Descriptor next(::openat(folder_.get(), name_.c_str(), kFolder | flags));
    if (!next.is_open()) return cannot_write(path_, errno);
    folder_ = std::move(next);
    return {};
  }

  // The link is held open: another one may take its name at any time.
  Status follow() {
    constexpr int kMostLinks = 40;  // as the kernel
    struct stat folder {
    }, link{};
    const Descriptor opened(::openat(folder_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!opened.is_open() || ::fstat(opened.get(), &link) != 0 || ::fstat(folder_.get(), &folder) != 0)
      return cannot_write(path_, errno);
    const bool is_trusted =
        link.st_uid == ::geteuid() || link.st_uid == folder.st_uid || (link.st_uid == 0 && !names_.empty());
    const std::string target = target_of(opened);
    if (!is_trusted) {
      return error(
          Code::invalid_argument,
          "cannot write '{}': the symbolic link '{}' to '{}' belongs to user {}, who is neither this user ({}) "
          "nor the owner of its folder ({}): name a file that is no such link",
          path_, name_, shown(target), link.st_uid, ::geteuid(), folder.st_uid);
    }
    // As of files, whoever may write the folder may have given a link of the user another name.
    if (link.st_nlink > 1 && is_of_others(folder)) {
      return error(Code::invalid_argument,
                   "cannot write '{}': the symbolic link '{}' to '{}' has {} names, and other users may have made this "
                   "one: name a file that is no such link",
                   path_, name_, shown(target), link.st_nlink);
    }
    if (++links_ > kMostLinks) return cannot_write(path_, ELOOP);
    if (target.empty()) return cannot_write(path_, ENOENT);
    std::deque<std::string> more = names_in(target);
    names_.insert(names_.begin(), more.begin(), more.end());
    if (target.starts_with('/')) folder_ = Descriptor(::open("/", kFolder));
    return {};
  }

  const std::string& path_;
  std::deque<std::string> names_;  ///< still to be walked
  int links_ = 0;
};

}  // namespace

Result<FilePlace> FilePlace::of(const std::string& path) {
  if (path.empty()) return cannot_write(path, ENOENT);
  Walk walk(path);
  TUTTI_RETURN_IF_ERROR(walk.go());
  FilePlace place(path);
  place.folder_ = std::move(walk.folder_);
  place.name_ = std::move(walk.name_);
  const auto own = walk.is_by_kernel_ ? own_descriptor(place.folder_, place.name_) : std::nullopt;
  place.kind_ = own ? Kind::own : walk.is_by_kernel_ ? Kind::by_kernel : Kind::named;
  return place;
}

int FilePlace::look(struct stat& about) const {
  return ::fstatat(folder_.get(), name_.c_str(), &about, has_name() ? AT_SYMLINK_NOFOLLOW : 0) == 0 ? 0 : errno;
}

Result<Descriptor> FilePlace::open_to_write(bool& is_new) const {
  constexpr std::chrono::seconds kPatience(5);  ///< for a reader that is about to start
  constexpr std::chrono::milliseconds kNap(20);
  is_new = false;
  if (kind_ == Kind::own) {
    const int number = std::atoi(name_.c_str());
    Descriptor same(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (!same.is_open()) return cannot_write(path_, errno);
    if ((::fcntl(number, F_GETFL) & O_ACCMODE) == O_RDONLY) return cannot_write(path_, EBADF);
    return same;
  }
  // O_NONBLOCK: a pipe without a reader is an error then. Without O_CREAT an existing file is never made anew.
  const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (has_name() ? O_NOFOLLOW : 0);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    Descriptor file(::openat(folder_.get(), name_.c_str(), flags));
    if (!file.is_open() && errno == ENOENT) {
      file = Descriptor(::openat(folder_.get(), name_.c_str(), flags | O_CREAT | O_EXCL, kModeOfNewFiles));
      is_new = file.is_open();
      if (!is_new && errno == EEXIST) continue;  // another process was faster
    }
    if (file.is_open()) {
      TUTTI_RETURN_IF_ERROR(settle(file));
      return file;
    }
    struct stat about {};
    const int failure = errno;
    const bool is_pipe = failure == ENXIO && look(about) == 0 && S_ISFIFO(about.st_mode);
    if (!is_pipe) return cannot_write(path_, failure);
    if (std::chrono::steady_clock::now() >= end) {
      return error(Code::invalid_argument, "cannot write '{}': no program has opened this pipe to read it for {} s",
                   path_, kPatience.count());
    }
    std::this_thread::sleep_for(kNap);
  }
}

Status FilePlace::settle(const Descriptor& opened) const {
  struct stat about {
  }, folder{};
  if (::fstat(opened.get(), &about) != 0 || ::fstat(folder_.get(), &folder) != 0) return cannot_write(path_, errno);
  if (S_ISBLK(about.st_mode)) {
    return error(Code::invalid_argument, "cannot write '{}': it exists and is not a regular file", path_);
  }
  // A hard link may lead to any file of the user: whose folder it is, or whom it admits, may have made it.
  if (has_name() && S_ISREG(about.st_mode) && about.st_nlink > 1 && is_of_others(folder)) {
    return error(Code::invalid_argument,
                 "cannot write '{}': the file has {} names, and other users may have made this one: name a new file",
                 path_, about.st_nlink);
  }
  const bool is_trusted = about.st_uid == ::geteuid() || about.st_uid == folder.st_uid;
  if (has_name() && S_ISFIFO(about.st_mode) && !is_trusted) {  // who never reads would keep the job for ever
    return error(Code::invalid_argument,
                 "cannot write '{}': the pipe belongs to user {}, who is neither this user ({}) nor the owner of its "
                 "folder ({}): name another file",
                 path_, about.st_uid, ::geteuid(), folder.st_uid);
  }
  if (!S_ISREG(about.st_mode)) {
    const int flags = ::fcntl(opened.get(), F_GETFL);
    ::fcntl(opened.get(), F_SETFL, flags & ~O_NONBLOCK);
    // A device that is always full says so of nothing too.
    if (S_ISCHR(about.st_mode) && ::isatty(opened.get()) == 0 && ::write(opened.get(), "", 0) < 0) {
      return cannot_write(path_, errno);
    }
  }
  return {};
}

Descriptor FilePlace::make_aside(mode_t mode, std::string& name) const {
  constexpr int kTries = 100;
  std::random_device random;
  for (int i = 0; i < kTries; ++i) {
    // Short, as the file's own name may be as long as a name can be.
    name = fmt::format(".tutti-{:08x}{:08x}.part", random(), random());
    Descriptor file(::openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.is_open() || errno != EEXIST) return file;
  }
  return {};
}

int FilePlace::take(const std::string& aside) const {
  return ::renameat(folder_.get(), aside.c_str(), folder_.get(), name_.c_str()) == 0 ? 0 : errno;
}

void FilePlace::remove(const std::string& name) const {
  static_cast<void>(::unlinkat(folder_.get(), name.empty() ? name_.c_str() : name.c_str(), 0));
}

}  // namespace tutti::harness::text
