// SPDX-License-Identifier: Apache-2.0
#define TOML_IMPLEMENTATION
#include "harness/text/toml.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "impl/types/names.h"

namespace tutti::harness::text {
namespace {

/// Refuses letters beyond ASCII but in lines that are a comment. Looking for blanks, 3.3.0 holds some of them for
/// impossible. Where a value is not well formed it looks within quotes too.
Status check_letters(std::string_view text) {
  bool is_comment = false;
  bool is_blank = true;  // so far
  int line = 1;
  for (const char c : text) {
    if (c >= '\n' && c <= '\r') {  // what the parser ends a line at
      if (c == '\n') ++line;
      is_comment = false;
      is_blank = true;
      continue;
    }
    is_comment |= is_blank && c == '#';
    is_blank &= c == ' ' || c == '\t';
    if (static_cast<unsigned char>(c) < 0x80 || is_comment) continue;
    return error(Code::invalid_argument, "line {}: a letter beyond ASCII: only a line of comment may have one", line);
  }
  return {};
}

/// Where a text of TOML is: in no string, or in one with these quotes.
class Quotes {
 public:
  /// Goes over what stands at the begin of `rest`, and returns its bytes: 1 but for quotes and escapes.
  std::size_t pass(std::string_view rest) {
    const char c = rest.front();
    if (is_within() && quote_ == '"' && c == '\\') return rest.size() > 1 && rest[1] != '\n' ? 2 : 1;
    if (is_within() && !is_long_ && c == '\n') quote_ = 0;  // the parser refuses it
    if (c != '"' && c != '\'') return 1;
    if (is_within() && c != quote_) return 1;
    const std::size_t run = std::min(rest.find_first_not_of(c), rest.size());
    if (!is_within()) {
      if (run == 2) return run;  // an empty string
      is_long_ = run >= 3;
      quote_ = c;
      return is_long_ ? 3 : 1;
    }
    if (!is_long_ || run >= 3) quote_ = 0;
    return is_long_ ? std::min<std::size_t>(run, 5) : 1;  // up to two quotes before the last three are of the string
  }
  [[nodiscard]] bool is_within() const { return quote_ != 0; }

 private:
  char quote_ = 0;
  bool is_long_ = false;
};

/// Refuses a line with many dots outside of strings and comments. For each part of a key such as `a.b.c` 3.3.0 calls
/// itself, and many parts exhaust the stack. Keys of a suite have one part, and its numbers are whole.
Status check_depth(std::string_view text) {
  constexpr int kMostDots = 16;
  Quotes quotes;
  bool is_comment = false;
  int line = 1, dots = 0;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    if (c >= '\n' && c <= '\r') is_comment = false;
    is_comment |= c == '#' && !quotes.is_within();
    if (c == '.' && !is_comment && !quotes.is_within() && ++dots > kMostDots) {
      return error(Code::invalid_argument, "line {}: a key of more than {} parts: keys here have one", line, kMostDots);
    }
    text.remove_prefix(is_comment ? 1 : quotes.pass(text));
  }
  return {};
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TUTTI_RETURN_IF_ERROR(check_letters(text));
  TUTTI_RETURN_IF_ERROR(check_depth(text));
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return error(Code::invalid_argument, "line {}: {}", parsed.error().source().begin.line,
                 shown(parsed.error().description()));
  }
  return std::move(parsed).table();
}

int toml_line(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

Status wrong_toml_type(const toml::node& node, std::string_view key, std::string_view wanted) {
  return error(Code::invalid_argument, "line {}: '{}' must be {}", toml_line(node), key, wanted);
}

}  // namespace tutti::harness::text
