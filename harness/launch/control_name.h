// SPDX-License-Identifier: Apache-2.0
// The names at which ranks find the control socket of their host.
#pragma once

#include <span>
#include <string>

#include "harness/floors.h"

namespace tutti::harness::launch {

/// A name for a control socket, which no other process can guess.
[[nodiscard]] std::string draw_control_name();
/// The name at which the ranks of a host find its process; `first`: of those ranks.
[[nodiscard]] std::string control_name_of(const std::string& job, int first);
/// The same for ranks that are all started alike, and which know their number: `firsts` of all hosts.
[[nodiscard]] std::string control_text_of(const std::string& job, std::span<const int> firsts);
/// What that says to a rank; any other text is the name itself.
[[nodiscard]] std::string control_name_in(const std::string& text, int rank);

}  // namespace tutti::harness::launch
