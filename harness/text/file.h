// SPDX-License-Identifier: Apache-2.0
// What the reports share: the reason why a file cannot be written or read, and files that grow by whole lines. A file
// that is written as a whole is an OutputFile.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "harness/floors.h"
#include "harness/text/outlet.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// "cannot write 'results/x.csv': the directory 'results' does not exist", from errno otherwise. Always
/// invalid_argument: an output that cannot be written is the user's to mend, whenever it is found.
[[nodiscard]] Status cannot_write(const std::string& path, int error_number);

/// Whether a file can be opened at `path`, or stdout written where it is `-`, without changing what it holds; and that
/// no other job writes it. Errors: invalid_argument, as OutputFile::open.
[[nodiscard]] Status check_writable(const std::string& path);

/// A file that grows by whole lines, and never holds a part of one.
class LineFile {
 public:
  /// Creates the file or empties it, and keeps other jobs from it; `-` is stdout. Errors: as OutputFile::open.
  [[nodiscard]] static Result<LineFile> open(std::string path);
  /// Opens a regular file to write behind its first `bytes` bytes. What follows them is cut off. Errors: as open.
  [[nodiscard]] static Result<LineFile> go_on(std::string path, std::size_t bytes);
  /// Hands lines, each with its end, to the operating system; a slow reader of a pipe may get them later. Errors: as
  /// cannot_write; what was written of them is then taken back where that is possible, in a regular file.
  Status append(std::string_view lines);

 private:
  LineFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;                 ///< of a regular file
  std::shared_ptr<Outlet> outlet_;  ///< of what is none
};

/// A file that an option names; an empty path: it names none.
struct FileOption {
  std::string_view name;
  const std::string& path;
};
/// That two options do not name one file, which need not exist yet: neither by different spellings nor as links.
/// Errors: invalid_argument; it proposes the path with `ending` for the other option.
[[nodiscard]] Status check_apart(const FileOption& one, const FileOption& other, std::string_view ending);

}  // namespace tutti::harness::text
