// SPDX-License-Identifier: Apache-2.0
// What three nodes, or two leaves, can say. There is no majority, so the screen and the repeats say nothing of it.
#pragma once

#include <optional>

#include "harness/accept/findings.h"
#include "harness/accept/first_pass.h"
#include "harness/accept/pair_player.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Of three nodes the one path that is slow, where both of its ends are well with the third node. Two slow paths are
/// none: then the node is slow that they have in common. None too if there are not three nodes.
[[nodiscard]] std::optional<Finding> link_of_three(const FirstPass& pass, const PairPlayer& player,
                                                   const Limits& limits);

/// Of two leaves the way that is slower than the way back. Whose uplink it is, they do not say. None if there are not
/// two leaves, or no more than four nodes.
[[nodiscard]] std::optional<Finding> uplink_of_two(const FirstPass& pass, const PairPlayer& player,
                                                   const Limits& limits);

}  // namespace tutti::harness::accept
