// SPDX-License-Identifier: Apache-2.0
// What a record and a message show of words that may hold a secret.
#pragma once

#include <string>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::text {

/// What stands for a value that may be a secret.
inline constexpr std::string_view kRedacted = "(redacted)";

/// `text` with the login of each address redacted: of `tcp://user:password@host` what is before the '@'.
[[nodiscard]] std::string without_logins(std::string_view text);

/// The program of a command that starts others, such as the agent `sshpass -p password ssh`: its first word, and
/// whether there are more.
[[nodiscard]] std::string without_arguments(std::string_view command);

}  // namespace tutti::harness::text
