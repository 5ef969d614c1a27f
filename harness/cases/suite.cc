// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/suite.h"

// The library comes as headers here: one source uses it, and programs need no file more beside them.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Where a date is followed by something that is no time, an assertion of 3.3.0 fails: without them it is an error.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include "harness/cases/lists.h"
#include "impl/types/names.h"

namespace tutti::harness::cases {
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

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

Status wrong_type(const toml::node& node, std::string_view key, std::string_view wanted) {
  return error(Code::invalid_argument, "line {}: '{}' must be {}", line_of(node), key, wanted);
}

Result<std::string> text_of(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  return wrong_type(node, key, "a text, a whole number, or a list of such");
}

/// A value, or the items of a list with commas between them, as the options have it.
Result<std::string> list_of(const toml::node& node, std::string_view key) {
  const toml::array* items = node.as_array();
  if (items == nullptr) return text_of(node, key);
  std::string list;
  for (const toml::node& item : *items) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(item, key));
    list += (list.empty() ? "" : ",") + text;
  }
  if (list.empty()) return error(Code::invalid_argument, "line {}: '{}' is empty", line_of(node), key);
  return list;
}

Result<Suite::Sweep> sweep_of(const toml::node& node, std::span<const std::string> keys) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return wrong_type(node, "sweep", "tables: [[sweep]]");
  Suite::Sweep sweep{.line = line_of(node), .texts = {}};
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (std::ranges::find(keys, name) == keys.end()) {
      const Status unknown = unknown_name("key", name, keys);
      return error(unknown.code(), "line {}: {}", line_of(value), unknown.message());
    }
    TUTTI_ASSIGN_OR_RETURN(sweep.texts[name], list_of(value, name));
  }
  return sweep;
}

Status add_cells(const toml::node& node, Suite& suite) {
  const toml::array* ids = node.as_array();
  if (ids == nullptr) return wrong_type(node, "cells", "a list of ids");
  for (const toml::node& id : *ids) {
    if (!id.is_string()) return wrong_type(id, "cells", "a list of ids");
    const auto one = case_of_cell_id(id.as_string()->get());
    if (!one.is_ok()) return error(one.status().code(), "line {}: {}", line_of(id), one.status().message());
    append_new(suite.cells, one.value());
  }
  return {};
}

}  // namespace

Result<Suite> suite_from_toml(std::string_view text, std::span<const std::string> keys) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TUTTI_RETURN_IF_ERROR(check_letters(text));
  TUTTI_RETURN_IF_ERROR(check_depth(text));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return error(Code::invalid_argument, "line {}: {}", parsed.error().source().begin.line,
                 shown(parsed.error().description()));
  }
  Suite suite;
  for (const auto& [key, value] : parsed.table()) {
    if (key.str() == "cells") {
      TUTTI_RETURN_IF_ERROR(add_cells(value, suite));
    } else if (key.str() == "sweep") {
      const toml::array* tables = value.as_array();
      if (tables == nullptr) return wrong_type(value, "sweep", "tables: [[sweep]]");
      for (const toml::node& table : *tables) {
        TUTTI_ASSIGN_OR_RETURN(Suite::Sweep sweep, sweep_of(table, keys));
        suite.sweeps.push_back(std::move(sweep));
      }
    } else {
      const Status unknown = unknown_name("key", key.str(), std::vector<std::string>{"cells", "sweep"});
      return error(unknown.code(), "line {}: {}", line_of(value), unknown.message());
    }
  }
  if (!suite.sweeps.empty() || !suite.cells.empty()) return suite;
  return error(Code::invalid_argument, "it has no cells: name them in [[sweep]] tables or in `cells = [...]`");
}

Result<Case> case_of_cell_id(std::string_view id) {
  const std::vector<std::string_view> parts = split(id, '/');
  const bool names_backend = parts.size() > 1 && parts[1].find('.') != std::string_view::npos;
  std::string whole(id);
  if (!names_backend && parts.size() > 1) {
    whole = fmt::format("{}/{}.{}{}", parts[0], kOwnBackend, kAuto, id.substr(parts[0].size()));
  }
  auto one = parse_case_id(whole);
  if (!one.is_ok()) return error(one.status().code(), "cell '{}': {}", shown(id), one.status().message());
  if (one.value().backend == kOwnBackend) return one;
  return error(Code::invalid_argument, "cell '{}' names the backend '{}': without '{}/' it is a cell", shown(id),
               one.value().backend, parts[1]);
}

std::string cell_id(const Case& one) {
  std::string id = case_id(one);
  if (one.algorithm != kAuto) return id;
  const std::string part = fmt::format("/{}.{}", kOwnBackend, kAuto);
  return id.erase(id.find(part), part.size());
}

}  // namespace tutti::harness::cases
