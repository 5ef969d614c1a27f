// SPDX-License-Identifier: Apache-2.0
// What a host answers through its agent (host_look.h), among all else that the agent and the host's login shell print:
// a greeting, a title for the terminal, with a newline at its end or without one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/doctor/host_look.h"
#include "harness/floors.h"
#include "impl/types/status.h"

namespace tutti::harness::doctor {

/// The answer that a line ends with: what follows kWord, where that is followed by an object or a number. Nothing if
/// the line has none.
[[nodiscard]] std::optional<std::string_view> answer_in(std::string_view line);

/// What a host's process says of the host, among all that the process has printed. Errors: io: its last line is quoted
/// if there is no answer, else those of look_from_json.
[[nodiscard]] Result<HostLook> look_among(std::string_view printed);

/// Finds the answers in the bytes that come, in pieces of any length.
class AnswerReader {
 public:
  static constexpr std::size_t kMostBytes = 4 << 20;  ///< that may come before an answer is complete

  void take(std::string_view bytes);
  /// The next answer that is complete.
  [[nodiscard]] std::optional<std::string> next();
  /// Whether kMostBytes have come since the last answer. Nothing is taken any more then.
  [[nodiscard]] bool is_flooded() const { return skipped_ + bytes_.size() - begin_ > kMostBytes; }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;     ///< of the line that is not complete yet
  std::size_t searched_ = 0;  ///< no newline is between the beginning of the line and here
  std::size_t skipped_ = 0;   ///< bytes of lines without an answer, since the last answer
};

}  // namespace tutti::harness::doctor
