// SPDX-License-Identifier: Apache-2.0
// Text from outside this program on its way to a terminal, a page or a file: a host's name, a library's error, a line
// of a log may hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// `text` as UTF-8 that neither steers a terminal nor changes how the text around it is read. Line feeds and tabs stay.
/// Written out as \x1b or \u202e are: other control characters (C0, DEL, C1), separators of lines and paragraphs,
/// marks that change the direction of writing, what XML has no character for, and bytes that are no UTF-8. A carriage
/// return before a line feed is dropped. Applied twice it changes nothing more. JSON as nlohmann's dump writes it stays
/// the same JSON.
[[nodiscard]] std::string printable(std::string_view text);

/// The same, in one line: line feeds and tabs are written out as \n and \t.
[[nodiscard]] std::string printable_line(std::string_view text);

/// The first at most `most` bytes of `text`, without a part of a character at the end.
[[nodiscard]] std::string_view beginning_of(std::string_view text, std::size_t most);

}  // namespace tutti
