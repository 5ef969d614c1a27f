// SPDX-License-Identifier: Apache-2.0
// The stages of an acceptance, in order. Each plays only on nodes that passed what it needs:
//
//   inventory  who is there
//   alone      each node by itself, all at once: a slow node is found here, a dead one is left out of the rest
//   pairs      examine_pairs (findings.h)
//   shifts     all nodes send at once, each to the one that is D further on, for many D (rings.h)
//   rings      all nodes send at once, in rings whose orders are drawn (rings.h)
//   groups     verified collectives on groups of 2, 4, 8, ... and all nodes (groups.h)
//   soak       drawn mixes of verified operations on all nodes, for some time
//   job        a network learns on all nodes, with verified sums of gradients; or a command of the user's
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/findings.h"
#include "harness/accept/report.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// Every stage, in the order in which they are played.
[[nodiscard]] const std::vector<std::string>& all_stages();

/// A command of the user's that plays the stage job in place of a training.
struct JobCommand {
  std::vector<std::string> words = {};  ///< see filled_command; empty: there is none
  double seconds = 600;                 ///< its deadline
};

struct AcceptPlan {
  std::vector<std::string> stages = all_stages();  ///< in any order
  PairsPlan pairs = {};
  std::vector<std::size_t> alone_sizes{std::size_t{8} << 20};  ///< of all_reduces within a node: the largest is judged
  std::map<std::string, std::size_t> bytes = {};               ///< of messages, by stage, where it is not pairs.bytes
  std::vector<Test> group_tests = {};                          ///< empty: usual_group_tests
  double soak_seconds = 60;
  JobCommand job = {};
  int rails = 0;                                     ///< over which pairs and shifts play; 0: the crew names none
  std::map<std::string, std::string> left_out = {};  ///< stages that what plays cannot play, and why
  std::vector<std::string> not_blocking = {};        ///< stages whose failures leave no node out of later ones
  std::map<std::string, std::vector<std::string>> needs = {};  ///< stages that the nodes of a stage have to have passed
  std::vector<std::string> differences = {};  ///< of the inventory: a node that differs from most in one does not play
  double deadline_times = 5;  ///< of a short test: so many times as long as most took before, 5 s at least
  int window = 8;             ///< messages of a bandwidth test that are under way
};

/// Rounds of a first pass over all pairs: what a forecast counts. `repeats` is an upper bound for healthy clusters.
struct Rounds {
  int alone = 0, pairs = 0, repeats = 0, shifts = 0, rings = 0, groups = 0;
};
[[nodiscard]] Rounds rounds_of(const AcceptPlan& plan, int nodes);

/// Plays the stages of `plan`. Names, leaves, absences, limits and findings of the report are set, the rest is not.
[[nodiscard]] AcceptReport accept_cluster(Crew& crew, const AcceptPlan& plan, Observer& observer);

}  // namespace tutti::harness::accept
