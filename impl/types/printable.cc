// SPDX-License-Identifier: Apache-2.0
#include "impl/types/printable.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace tutti {
namespace {

struct Character {
  std::size_t bytes = 0;  ///< 0: the text does not begin with UTF-8
  unsigned value = 0;
};

/// The character that a text of one byte or more begins with. Too long a form, a surrogate and a value beyond Unicode
/// are no UTF-8.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return {.bytes = 1, .value = first};
  if (first < 0xc0 || first > 0xf4) return {};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  unsigned value = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<unsigned, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value < 0xe000;
  return value < kLeast[bytes] || value > 0x10ffff || is_surrogate ? Character{} : Character{bytes, value};
}

/// From and to of what is written out.
constexpr std::array<std::pair<unsigned, unsigned>, 8> kWrittenOut{{{0x00, 0x1f},      // C0
                                                                    {0x7f, 0x9f},      // DEL, C1
                                                                    {0x61c, 0x61c},    // marks of direction
                                                                    {0x200e, 0x200f},  // the same
                                                                    {0x2028, 0x202e},  // separators, overrides
                                                                    {0x2066, 0x2069},  // isolates
                                                                    {0xfdd0, 0xfdef},  // no characters
                                                                    {0xfffe, 0xffff}}};

bool is_visible_ascii(unsigned value) { return value >= 0x20 && value < 0x7f; }

bool is_written_out(unsigned value) {
  for (const auto& [from, to] : kWrittenOut) {
    if (value >= from && value <= to) return true;
  }
  return false;
}

std::string printed(std::string_view text, bool is_line) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const auto end =
        std::ranges::find_if_not(text, [](char c) { return is_visible_ascii(static_cast<unsigned char>(c)); });
    const auto plain = static_cast<std::size_t>(end - text.begin());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return result;
    const Character one = first_of(text);
    const std::string_view bytes = text.substr(0, one.bytes == 0 ? 1 : one.bytes);
    text.remove_prefix(bytes.size());
    if (one.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes.front()));
    } else if (one.value == '\n' || one.value == '\t') {
      result += !is_line ? bytes : one.value == '\n' ? "\\n" : "\\t";
    } else if (one.value == '\r' && text.starts_with('\n')) {
      continue;
    } else if (!is_written_out(one.value)) {
      result += bytes;
    } else {
      result += one.value < 0x20 ? fmt::format("\\x{:02x}", one.value) : fmt::format("\\u{:04x}", one.value);
    }
  }
}

}  // namespace

std::string printable(std::string_view text) { return printed(text, false); }

std::string printable_line(std::string_view text) { return printed(text, true); }

std::string_view beginning_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  // A character has at most four bytes, so one that is cut begins within the last three.
  for (std::size_t back = 1; back <= 3 && back <= most; ++back) {
    const std::size_t begin = most - back;
    if ((static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80) continue;
    const std::size_t bytes = first_of(text.substr(begin)).bytes;
    return text.substr(0, bytes > back ? begin : most);
  }
  return text.substr(0, most);
}

}  // namespace tutti
