// SPDX-License-Identifier: Apache-2.0
// What the reports share: saying why a file cannot be written or read, replacing a file in one step, and files that
// grow by whole lines.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// "cannot write 'results/x.csv': the directory 'results' does not exist", from errno otherwise. Always
/// invalid_argument: an output that cannot be written is the user's to mend, whenever it is found.
[[nodiscard]] Status cannot_write(const std::string& path, int error_number);

/// Whether a file can be opened at `path`, or stdout written where it is `-`, without changing what it holds.
/// Errors: invalid_argument, as cannot_write.
[[nodiscard]] Status check_writable(const std::string& path);

/// Whether replace_file can be expected to do at `path`: writes some text beside it, and takes it away again. Errors:
/// invalid_argument, as replace_file.
[[nodiscard]] Status check_replaceable(const std::string& path);

/// Replaces the file at `path` by `text` so that readers see the old content or the new, never a part: written beside
/// it, then renamed. Errors: as cannot_write; the file is then as it was.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view text);

/// A file that grows by whole lines, and never holds a part of one.
class LineFile {
 public:
  /// Creates or replaces the file; `-` is stdout. Errors: as cannot_write.
  [[nodiscard]] static Result<LineFile> open(std::string path);
  /// Hands lines, each with its end, to the operating system. Errors: as cannot_write; what was written of them is then
  /// taken back where that is possible, in a regular file.
  Status append(std::string_view lines);

 private:
  LineFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

/// A file that an option names; an empty path: it names none.
struct FileOption {
  std::string_view name;
  const std::string& path;
};
/// That two options do not name one file, which need not exist yet: neither by different spellings nor as links.
/// Errors: invalid_argument; it proposes the path with `ending` for the other option.
[[nodiscard]] Status check_apart(const FileOption& one, const FileOption& other, std::string_view ending);

/// The whole of a file that the user named. Errors: invalid_argument naming the path and the reason.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

/// That all which was printed has arrived: flushes stdout. Errors: invalid_argument with the reason; output that nobody
/// can read is the user's mistake.
[[nodiscard]] Status flush_output();
/// The same error, of a failure that somebody else has seen.
[[nodiscard]] Status cannot_print(std::string_view why);

}  // namespace tutti::harness::text
