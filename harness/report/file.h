// SPDX-License-Identifier: Apache-2.0
// What the reports share: saying why a file cannot be written or read, and replacing a file in one step.
#pragma once

#include <string>
#include <string_view>

#include "impl/types/status.h"

namespace tutti::harness {

/// "cannot write 'results/x.csv': the directory 'results' does not exist", from errno otherwise. Before anything is
/// measured this is the user's mistake (invalid_argument), afterwards the world's (io): the caller says which.
[[nodiscard]] Status cannot_write(Code code, const std::string& path, int error_number);

/// Whether a file can be opened at `path`, without changing what it holds. Errors: invalid_argument, as cannot_write.
[[nodiscard]] Status check_writable(const std::string& path);

/// Whether replace_file can be expected to do at `path`: writes some text beside it, and takes it away again. Errors:
/// invalid_argument, as replace_file.
[[nodiscard]] Status check_replaceable(const std::string& path);

/// Replaces the file at `path` by `text` so that readers see the old content or the new, never a part: written beside
/// it, then renamed. Errors: `code`, as cannot_write; the file is then as it was.
[[nodiscard]] Status replace_file(Code code, const std::string& path, std::string_view text);

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
/// Prints to stdout and flushes it. Errors: as flush_output.
[[nodiscard]] Status print(std::string_view text);
/// Prints to stderr, which may be closed: then nobody learns of it.
void print_error(std::string_view text);
/// For the start of a program: a reader that goes away is then an error of the write, not a signal, and no file that is
/// opened later takes the place of a standard stream that is closed.
void guard_output();

}  // namespace tutti::harness
