// SPDX-License-Identifier: Apache-2.0
#include "harness/text/file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "harness/text/streams.h"

namespace tutti::harness::text {
namespace {

constexpr mode_t kModeOfNewFiles = 0666;  // less what the user's mask takes away

bool is_same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::equivalent(one, other, failure)) return true;
  const fs::path path = fs::weakly_canonical(fs::absolute(one, failure), failure);
  return path == fs::weakly_canonical(fs::absolute(other, failure), failure) && !failure;
}

/// What is written before it stands at `path`.
std::string aside_of(const std::string& path) { return path + ".part"; }

/// A rename would put a file in the place of a device or pipe; such a reader cannot see the old content anyway.
Status refuse_special(const std::string& path) {
  std::error_code ignored;
  const bool is_special = std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  return is_special ? error(Code::invalid_argument, "cannot write '{}': it exists and is not a regular file", path)
                    : Status();
}

/// Leaves nothing where it fails.
Status write_aside(const std::string& path, std::string_view text) {
  const std::string aside = aside_of(path);
  std::FILE* file = std::fopen(aside.c_str(), "we");
  if (file == nullptr) return cannot_write(path, errno);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed) return {};
  const Status status = cannot_write(path, is_written ? errno : write_error);
  std::remove(aside.c_str());
  return status;
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
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(path, ignored);
  // A pipe's reader would take opening and closing for the end.
  const bool is_pipe =
      was_there && !std::filesystem::is_regular_file(path, ignored) && !std::filesystem::is_directory(path, ignored);
  if (is_pipe) return {};
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return cannot_write(path, errno);
  std::fclose(file);
  if (!was_there) std::remove(path.c_str());
  return {};
}

Status check_replaceable(const std::string& path) {
  constexpr std::size_t kBytes = 65536;  // of a report with some tens of cells
  TUTTI_RETURN_IF_ERROR(refuse_special(path));
  TUTTI_RETURN_IF_ERROR(check_writable(path));
  TUTTI_RETURN_IF_ERROR(write_aside(path, std::string(kBytes, '\n')));
  std::remove(aside_of(path).c_str());
  return {};
}

Status replace_file(const std::string& path, std::string_view text) {
  TUTTI_RETURN_IF_ERROR(refuse_special(path));
  TUTTI_RETURN_IF_ERROR(write_aside(path, text));
  const std::string aside = aside_of(path);
  if (std::rename(aside.c_str(), path.c_str()) == 0) return {};
  const Status status = cannot_write(path, errno);
  std::remove(aside.c_str());
  return status;
}

Result<LineFile> LineFile::open(std::string path) {
  Descriptor file(path == kStdoutPath
                      ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                      : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kModeOfNewFiles));
  if (file.get() < 0) return cannot_write(path, errno);
  return LineFile(std::move(path), std::move(file));
}

Status LineFile::append(std::string_view lines) {
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

Result<std::string> read_file(const std::string& path) {
  const auto failed = [&](int error_number) {
    return error(Code::invalid_argument, "cannot read '{}': {}", path, std::generic_category().message(error_number));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) return failed(errno);
  std::string text;
  std::array<char, 65536> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), file.get())) text.append(part.data(), bytes);
  if (std::ferror(file.get()) != 0) return failed(errno);
  return text;
}

Status flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return cannot_print(std::generic_category().message(errno));
}

Status cannot_print(std::string_view why) {
  return error(Code::invalid_argument, "the output cannot be written: {}", why);
}

}  // namespace tutti::harness::text
