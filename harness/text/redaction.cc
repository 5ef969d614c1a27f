// SPDX-License-Identifier: Apache-2.0
#include "harness/text/redaction.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::harness::text {

/// The user of a login stands between the slashes of an address and its last '@' before the path.
std::string without_logins(std::string_view text) {
  constexpr std::string_view kSlashes = "//";
  std::string result;
  for (std::size_t slashes; (slashes = text.find(kSlashes)) != text.npos;) {
    const std::size_t start = slashes + kSlashes.size();
    result += text.substr(0, start);
    text.remove_prefix(start);
    const std::size_t at = text.substr(0, text.find_first_of("/?# ")).rfind('@');
    if (at == text.npos) continue;
    result += kRedacted;
    text.remove_prefix(at);
  }
  return result + std::string(text);
}

std::string without_arguments(std::string_view command) {
  constexpr std::string_view kBlanks = " \t\n";
  command.remove_prefix(std::min(command.find_first_not_of(kBlanks), command.size()));
  const std::string_view program = command.substr(0, command.find_first_of(kBlanks));
  const bool has_more = command.find_first_not_of(kBlanks, program.size()) != command.npos;
  // What sets a variable for a program is none.
  if (program.find('=') != program.npos) return std::string(kRedacted);
  return has_more ? fmt::format("{} {}", program, kRedacted) : std::string(program);
}

}  // namespace tutti::harness::text
