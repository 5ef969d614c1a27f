// SPDX-License-Identifier: Apache-2.0
#include "harness/text/file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "harness/text/file_place.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"

namespace tutti::harness::text {
namespace {

bool is_same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::equivalent(one, other, failure)) return true;
  const fs::path path = fs::weakly_canonical(fs::absolute(one, failure), failure);
  return path == fs::weakly_canonical(fs::absolute(other, failure), failure) && !failure;
}

}  // namespace

Status cannot_write(const std::string& path, int error_number) {
  if (path == kStdoutPath) return cannot_print(std::generic_category().message(error_number));
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (error_number == ENOENT && !directory.empty() && !std::filesystem::exists(directory, ignored)) {
    return error(Code::invalid_argument, "cannot write '{}': the directory '{}' does not exist", path,
                 directory.string());
  }
  return error(Code::invalid_argument, "cannot write '{}': {}", path, std::generic_category().message(error_number));
}

Status check_writable(const std::string& path) {
  if (path == kStdoutPath) return check_stdout();
  struct stat about {};
  TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path));
  // A pipe's reader would take opening and closing for the end.
  if (place.look(about) == 0 && S_ISFIFO(about.st_mode)) return {};
  bool is_new = false;
  const auto file = open_output(path, is_new);
  if (is_new) place.remove();
  return file.status();
}

Result<LineFile> LineFile::open(std::string path) {
  Descriptor opened;
  bool goes_on = path == kStdoutPath;  // behind what is there already
  if (goes_on) {
    TUTTI_RETURN_IF_ERROR(check_stdout());
    opened = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  } else {
    TUTTI_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::of(path));
    goes_on = place.is_own();
    bool is_new = false;
    TUTTI_ASSIGN_OR_RETURN(opened, open_output(path, is_new));
  }
  struct stat about {};
  if (::fstat(opened.get(), &about) != 0) return cannot_write(path, errno);
  LineFile file(std::move(path), std::move(opened));
  if (!S_ISREG(about.st_mode)) {
    file.outlet_ = Outlet::on(std::move(file.file_));
  } else if (!goes_on && ::ftruncate(file.file_.get(), 0) != 0) {
    return cannot_write(file.path_, errno);
  }
  return file;
}

Result<LineFile> LineFile::go_on(std::string path, std::size_t bytes) {
  bool is_new = false;
  TUTTI_ASSIGN_OR_RETURN(Descriptor opened, open_output(path, is_new));
  const auto end = static_cast<off_t>(bytes);
  if (::ftruncate(opened.get(), end) != 0 || ::lseek(opened.get(), end, SEEK_SET) != end)
    return cannot_write(path, errno);
  return LineFile(std::move(path), std::move(opened));
}

Status LineFile::append(std::string_view lines) {
  if (outlet_ != nullptr) {
    const int failure = outlet_->write(lines);
    return failure == 0 ? Status() : cannot_write(path_, failure);
  }
  struct stat before {};
  const bool can_go_back = ::fstat(file_.get(), &before) == 0 && S_ISREG(before.st_mode);
  const off_t place = ::lseek(file_.get(), 0, SEEK_CUR);
  while (!lines.empty()) {
    const ssize_t written = ::write(file_.get(), lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const Status status = cannot_write(path_, written < 0 ? errno : ENOSPC);
      const bool is_back = can_go_back && ::ftruncate(file_.get(), before.st_size) == 0;
      if (is_back) static_cast<void>(::lseek(file_.get(), place, SEEK_SET));
      return status;
    }
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status check_apart(const FileOption& one, const FileOption& other, std::string_view ending) {
  const bool is_one_stdout = (one.path == kStdoutPath) != (other.path == kStdoutPath);
  if (one.path.empty() || other.path.empty() || is_one_stdout || !is_same_file(one.path, other.path)) return {};
  if (one.path == kStdoutPath) {
    return error(Code::invalid_argument, "{} and {} are both '-', which is stdout: name a file for one of them",
                 one.name, other.name);
  }
  return error(Code::invalid_argument, "{} and {} are both '{}': did you mean '{}{}' for {}?", one.name, other.name,
               one.path, std::filesystem::path(one.path).replace_extension().string(), ending, other.name);
}

}  // namespace tutti::harness::text
