// SPDX-License-Identifier: Apache-2.0
// Files that are written as a whole. Readers see the old content or the new, never a part: a text is written beside the
// file and renamed. What cannot be renamed upon, such as a file that is mounted by itself, is written in place.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "harness/floors.h"
#include "harness/text/file_place.h"
#include "harness/text/outlet.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// An output of this process, to which no other process writes meanwhile.
class OutputFile {
 public:
  static constexpr std::size_t kRoomOfAReport = 65536;  ///< of some tens of cells

  /// Finds out whether `path` can be written, with room for so many bytes, before there is a text. A file that exists
  /// keeps its content. One that does not is made, empty, and removed by the destructor if nothing was written. Errors:
  /// invalid_argument, as cannot_write; as FilePlace; naming the process that writes this file already.
  [[nodiscard]] static Result<OutputFile> open(std::string path, std::size_t room = kRoomOfAReport);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// Replaces the content by `text`. The file keeps its mode. A pipe or a device gets the text after what it had.
  /// Errors: invalid_argument, as cannot_write; the file is then as it was.
  [[nodiscard]] Status replace(std::string_view text);
  /// Whether replace can be called again: not if the file is a pipe or a device, which cannot take a text back.
  [[nodiscard]] bool is_replaceable() const { return outlet_ == nullptr; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status find_room(std::size_t bytes) const;
  void abandon();

  std::string path_;
  Descriptor file_;                 ///< what is there now, locked
  bool is_new_ = false;             ///< made by open, and still empty
  std::shared_ptr<Outlet> outlet_;  ///< of a pipe or device; null for a regular file
};

/// The outputs of one command, by their paths. An empty path stands for no file.
class OutputFiles {
 public:
  /// Opens one more. Errors: as OutputFile::open.
  [[nodiscard]] Status open(const std::string& path);
  /// Replaces the content of one that is open. Errors: as OutputFile::replace.
  [[nodiscard]] Status replace(const std::string& path, std::string_view text);

 private:
  std::map<std::string, OutputFile> files_;
};

/// Replaces the file at `path` by `text`, at once and without finding out before. A file that is new has `mode`, less
/// what the user's mask takes away. Errors: as OutputFile.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view text, mode_t mode = 0666);

/// Locks a regular file, so that no other process of tutti writes it while `file` is open. A file system without locks
/// is taken as it is. Errors: invalid_argument naming the process that has locked it.
[[nodiscard]] Status lock_output(const Descriptor& file, const std::string& path);
/// Opens what is at `path` to write it, and locks it if it is a regular file. It keeps its content.
/// Errors: as OutputFile::open.
[[nodiscard]] Result<Descriptor> open_output(const std::string& path, bool& is_new);

}  // namespace tutti::harness::text
