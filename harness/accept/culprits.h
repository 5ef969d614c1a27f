// SPDX-License-Identifier: Apache-2.0
// From suspects and their repeats to findings: which part is to blame, and what the whole fleet shows.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/findings.h"
#include "harness/accept/first_pass.h"
#include "harness/accept/pair_player.h"
#include "harness/accept/repeats.h"
#include "harness/accept/screen.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Nodes, uplinks and links with a verdict other than PASS. Plays the nodes that fail alone.
[[nodiscard]] std::vector<Finding> culprits_of(PairPlayer& player, const PairsPlan& plan, const Suspects& suspects,
                                               Repeats& repeats);
/// More nodes or links fail than can be: the level is wrong, and speeds do not say which of them are right.
[[nodiscard]] bool is_level_in_doubt(const std::vector<Finding>& found, const PairPlayer& player);
/// All are slower or faster than they were.
[[nodiscard]] std::optional<Finding> fleet_against(const Baseline& baseline, const FirstPass& pass,
                                                   const PairPlayer& player, const Limits& limits);
/// Nodes that are slow in spells, which no median shows. Tests of links and slow nodes that are `known` do not
/// count.
[[nodiscard]] std::vector<Finding> unsteady_nodes(const FirstPass& pass, const Fit& fit, const PairPlayer& player,
                                                  const Limits& limits, std::span<const Finding> known);

}  // namespace tutti::harness::accept
