// SPDX-License-Identifier: Apache-2.0
#include "harness/text/output_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/text/file.h"

namespace tutti::harness::text {
namespace {

constexpr mode_t kPermissions = 0777;

/// What ends a program waits while one of these lives, so that nothing is left beside a file.
class WithoutEnd {
 public:
  WithoutEnd() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ends, signal);
    pthread_sigmask(SIG_BLOCK, &ends, &before_);
  }
  WithoutEnd(const WithoutEnd&) = delete;
  WithoutEnd& operator=(const WithoutEnd&) = delete;
  ~WithoutEnd() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

bool is_regular(const Descriptor& file, struct stat& about) {
  return ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode);
}

bool is_one_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// 0 or errno.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Makes the file as long as `bytes`, if it is shorter. 0 or errno; the file is then as it was.
int lengthen(int file, std::size_t bytes) {
  struct stat about {};
  if (::fstat(file, &about) != 0) return errno;
  if (static_cast<off_t>(bytes) <= about.st_size) return 0;
  const int failure = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (failure == 0 || failure == EOPNOTSUPP || failure == EINVAL || failure == EBADF) return 0;
  return ::ftruncate(file, about.st_size) == 0 ? failure : errno;
}

/// 0 or errno. Room is found before the old content is lost.
int write_in_place(int file, std::string_view text) {
  if (const int failure = lengthen(file, text.size()); failure != 0) return failure;
  if (::lseek(file, 0, SEEK_SET) < 0) return errno;
  if (const int failure = write_all(file, text); failure != 0) return failure;
  return ::ftruncate(file, static_cast<off_t>(text.size())) == 0 ? 0 : errno;
}

/// Whether the folder, or what is in it under the name, says that a file in the place of another is not for this user.
bool is_for_writing_in_place(int failure) {
  constexpr std::array kAll{EACCES, EPERM, EROFS, EBUSY, EXDEV};
  return std::find(kAll.begin(), kAll.end(), failure) != kAll.end();
}

/// The new file, locked if `lock` is set. It has the mode of what was there, and its owner if this user may say so.
/// Not open: errno, and nothing is left.
Descriptor put_beside_and_rename(const FilePlace& place, std::string_view text, mode_t mode, bool locks) {
  struct stat before {};
  const bool was_there = place.look(before) == 0;
  constexpr mode_t kOwnEyes = 0600;
  std::string aside;
  const WithoutEnd guard;
  Descriptor file = place.make_aside(was_there ? kOwnEyes : mode, aside);
  if (!file.is_open()) return file;
  int failure = write_all(file.get(), text);
  if (failure == 0 && was_there) {
    if (::fchown(file.get(), before.st_uid, before.st_gid) != 0) {
      [[maybe_unused]] const int of_group = ::fchown(file.get(), static_cast<uid_t>(-1), before.st_gid);
    }
    failure = ::fchmod(file.get(), before.st_mode & kPermissions) == 0 ? 0 : errno;
  }
  if (failure == 0 && locks) static_cast<void>(lock_output(file, ""));
  if (failure == 0) failure = place.take(aside);
  if (failure == 0) return file;
  place.remove(aside);
  errno = failure;
  return {};
}

/// One of the two locks that a writer has: by the open file, which says that there is a writer, and by the process,
/// which says who it is.
struct flock part_to_lock(off_t which) {
  constexpr off_t kBeyondAllContent = off_t{1} << 62;
  struct flock part {};
  part.l_type = F_WRLCK;
  part.l_whence = SEEK_SET;
  part.l_start = kBeyondAllContent + which;
  part.l_len = 1;
  return part;
}

}  // namespace

Status lock_output(const Descriptor& file, const std::string& path) {
  struct flock by_file = part_to_lock(0), by_process = part_to_lock(1);
  if (::fcntl(file.get(), F_OFD_SETLK, &by_file) == 0) {
    static_cast<void>(::fcntl(file.get(), F_SETLK, &by_process));
    return {};
  }
  if (errno != EAGAIN && errno != EACCES) return {};
  // A lock of a reader is no job's: whoever may read the file could keep all jobs from it.
  struct flock held = part_to_lock(0);
  if (::fcntl(file.get(), F_OFD_GETLK, &held) == 0 && held.l_type == F_RDLCK) return {};
  // A process that another container or host runs has no number here.
  const bool is_known = ::fcntl(file.get(), F_GETLK, &by_process) == 0 && by_process.l_type != F_UNLCK;
  if (!is_known || by_process.l_pid <= 0) {
    return error(Code::invalid_argument,
                 "cannot write '{}': another output of this command, or another job, writes it: name another file",
                 path);
  }
  return error(Code::invalid_argument, "cannot write '{}': another job writes it, process {}: name another file", path,
               by_process.l_pid);
}

Result<Descriptor> open_output(const std::string& path, bool& is_new) {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path));
    TUTTI_ASSIGN_OR_RETURN(Descriptor file, place.open_to_write(is_new));
    struct stat opened {
    }, there{};
    if (!place.has_name() || !is_regular(file, opened)) return file;
    const Status locked = lock_output(file, path);
    const bool is_there = place.look(there) == 0 && is_one_file(opened, there);
    if (!is_there) continue;  // another job has just renamed a new one upon it
    TUTTI_RETURN_IF_ERROR(locked);
    return file;
  }
}

Result<OutputFile> OutputFile::open(std::string path, std::size_t room) {
  OutputFile output(std::move(path));
  TUTTI_ASSIGN_OR_RETURN(output.file_, open_output(output.path_, output.is_new_));
  struct stat about {};
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(output.path_));
  if (!is_regular(output.file_, about) || place.is_own()) {
    output.outlet_ = Outlet::on(std::move(output.file_));
    return output;
  }
  TUTTI_RETURN_IF_ERROR(output.find_room(room));
  return output;
}

Status OutputFile::find_room(std::size_t bytes) const {
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path_));
  std::string aside;
  const WithoutEnd guard;
  const Descriptor file = place.has_name() ? place.make_aside(0600, aside) : Descriptor();
  int failure = file.is_open() ? write_all(file.get(), std::string(bytes, '\n')) : errno;
  if (file.is_open()) place.remove(aside);
  if (!place.has_name() || (!file.is_open() && is_for_writing_in_place(failure))) {
    struct stat before {};
    ::fstat(file_.get(), &before);
    failure = lengthen(file_.get(), bytes);
    if (::ftruncate(file_.get(), before.st_size) != 0 && failure == 0) failure = errno;
  }
  return failure == 0 ? Status() : cannot_write(path_, failure);
}

Status OutputFile::replace(std::string_view text) {
  if (outlet_ != nullptr) {
    const int failure = outlet_->write(text);
    return failure == 0 ? Status() : cannot_write(path_, failure);
  }
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path_));
  Descriptor renamed;
  if (place.has_name()) renamed = put_beside_and_rename(place, text, kPermissions & 0666, true);
  if (renamed.is_open()) {
    file_ = std::move(renamed);
    is_new_ = false;
    return {};
  }
  if (place.has_name() && !is_for_writing_in_place(errno)) return cannot_write(path_, errno);
  struct stat mine {
  }, there{};
  const bool is_mine = is_regular(file_, mine) && place.look(there) == 0 && is_one_file(mine, there);
  if (!is_mine) {
    TUTTI_ASSIGN_OR_RETURN(file_, place.open_to_write(is_new_));
  }
  is_new_ = false;
  const int failure = write_in_place(file_.get(), text);
  return failure == 0 ? Status() : cannot_write(path_, failure);
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  path_ = std::move(other.path_);
  file_ = std::move(other.file_);
  outlet_ = std::move(other.outlet_);
  is_new_ = std::exchange(other.is_new_, false);
  return *this;
}

OutputFile::~OutputFile() { abandon(); }

void OutputFile::abandon() {
  struct stat mine {
  }, there{};
  if (!is_new_ || !is_regular(file_, mine) || mine.st_size != 0) return;
  const auto place = FilePlace::of(path_);
  if (place.is_ok() && place.value().look(there) == 0 && is_one_file(mine, there)) place.value().remove();
}

Status OutputFiles::open(const std::string& path) {
  if (path.empty()) return {};
  TUTTI_ASSIGN_OR_RETURN(OutputFile file, OutputFile::open(path));
  files_.insert_or_assign(path, std::move(file));
  return {};
}

Status OutputFiles::replace(const std::string& path, std::string_view text) {
  if (path.empty()) return {};
  const auto file = files_.find(path);
  TUTTI_ASSERT(file != files_.end(), "'{}' was not opened", path);
  return file->second.replace(text);
}

Status replace_file(const std::string& path, std::string_view text, mode_t mode) {
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path));
  struct stat about {};
  const bool is_whole = place.has_name() && (place.look(about) != 0 || S_ISREG(about.st_mode));
  if (is_whole) {
    if (put_beside_and_rename(place, text, mode, false).is_open()) return {};
    if (!is_for_writing_in_place(errno)) return cannot_write(path, errno);
  }
  bool is_new = false;
  TUTTI_ASSIGN_OR_RETURN(const Descriptor file, place.open_to_write(is_new));
  const int failure = is_regular(file, about) ? write_in_place(file.get(), text) : write_all(file.get(), text);
  return failure == 0 ? Status() : cannot_write(path, failure);
}

}  // namespace tutti::harness::text
