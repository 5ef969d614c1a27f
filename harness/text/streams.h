// SPDX-License-Identifier: Apache-2.0
// The three descriptors that a program is started with. All text for stdout and stderr goes through here, and becomes
// printable here. An error of stderr changes nothing else. A reader of stdout or stderr that is slow delays the end of
// the program only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::text {

/// At the start of a program: those of the descriptors 0 to 2 that are closed are opened on /dev/null, so that no other
/// file becomes one of them. Writing to a stdout that was closed stays an error.
/// A file that outgrows a limit becomes an error too, and no longer ends the program.
void prepare_streams();

/// Writes `text` to stderr, as printable has it. A full disk, or a reader that is gone, is nobody's mistake: nothing is
/// thrown or returned, and no signal ends the program.
void to_stderr(std::string_view text);
/// Whether the reader of stderr has not yet taken what was written before.
[[nodiscard]] bool is_stderr_behind();

/// Writes `text` to stdout as printable has it, after what was printed there. The reader may get it later. Errors:
/// invalid_argument with the reason, also that of an earlier text.
Status to_stdout(std::string_view text);
/// The same for a text with a format; flush_output reports an error.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  static_cast<void>(to_stdout(fmt::format(format, std::forward<Args>(args)...)));
}
/// Waits until all that was printed has arrived, however slow its reader is. With a `patience` it waits while the
/// reader goes on, then drops the rest. Errors: invalid_argument with the reason.
[[nodiscard]] Status flush_output(std::optional<std::chrono::milliseconds> patience = {});
/// The same error, for a failure that was found elsewhere.
[[nodiscard]] Status cannot_print(std::string_view why);

/// On a terminal, what was last written to stderr without a line end is written over by what follows.
void erase_line_of_stderr();

/// The path that stands for stdout.
inline constexpr std::string_view kStdoutPath = "-";
/// Whether stdout can be written at all, as far as that is known without writing. Errors: invalid_argument.
[[nodiscard]] Status check_stdout();

/// The columns that text on `descriptor` may have: COLUMNS where it is a number, or those of the terminal. Empty: as
/// many as it needs.
[[nodiscard]] std::optional<std::size_t> columns_of(int descriptor);

/// Where a command's text for people goes. The first failure is kept, and stops nothing.
class Console {
 public:
  enum class Place : std::uint8_t { to_stdout, to_stderr, nowhere };
  explicit Console(Place place = Place::to_stdout) : place_(place) {}
  /// stdout, or stderr where results go to stdout.
  static Console beside(bool has_results_on_stdout) {
    return Console(has_results_on_stdout ? Place::to_stderr : Place::to_stdout);
  }

  /// As printable has it.
  void print(std::string_view text);
  /// Of stdout alone.
  [[nodiscard]] const Status& failure() const { return failure_; }
  [[nodiscard]] std::optional<std::size_t> columns() const;
  [[nodiscard]] bool is_silent() const { return place_ == Place::nowhere; }

 private:
  Place place_;
  Status failure_;
};

}  // namespace tutti::harness::text
