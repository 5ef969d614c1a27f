// SPDX-License-Identifier: Apache-2.0
// What a part is called in a picture, and which colour it has. Parts that are reduced are named by their unit and the
// ranks that are in them; the others by the rank that gave them.
#pragma once

#include <string>

#include "harness/draw/story.h"

namespace tutti::harness::draw {

/// Whether names may have signs that a terminal may lack.
enum class Script : std::uint8_t { picture, plain };

/// "b 0+1", of all ranks "Σb"; plain "b:0,1" and "b*". Empty for an empty part.
[[nodiscard]] std::string name_of(const Story& story, const Part& part, Script script);
/// As many names as fit in `most` characters, and ".." if some are left out; at least one.
[[nodiscard]] std::string names_of(const Story& story, const Parts& parts, Script script, std::size_t most);
/// Of a part as its rank gives it: without the rank, if the unit says enough.
[[nodiscard]] std::string given_name(const Story& story, const Part& part, Script script);
/// "0-3,5".
[[nodiscard]] std::string ranks_text(RankBits ranks);
/// Signs on a screen: a character of several bytes is one.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// Parts are told apart by their unit.
[[nodiscard]] bool is_by_unit(const Story& story);
/// How many colours there are, at least 1.
[[nodiscard]] int colours_of(const Story& story);
/// "#rrggbb" of the part's colour, from dark (0) to white (1).
[[nodiscard]] std::string colour_of(const Story& story, const Part& part, double lightness);

}  // namespace tutti::harness::draw
