// SPDX-License-Identifier: Apache-2.0
// What an acceptance has found: the parts that are not as they should be, and what was measured of each node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/accept/verdict.h"
#include "harness/floors.h"

namespace tutti::harness::accept {

/// What is wrong with a part.
enum class Class {
  none,
  wrong,          ///< first -> second: wrong data
  dead,           ///< node first does not answer
  job,            ///< the user's command failed on `members`
  hung,           ///< first and second fail with each other, and with no third node; a suspect works again
  node,           ///< node first sends, receives and computes slowly
  nic,            ///< node first sends and receives slowly
  nic_out,        ///< node first sends slowly
  nic_in,         ///< node first receives slowly
  link,           ///< first and second are slow with each other, and with no third node
  link_dir,       ///< first -> second is slow; the way back is not
  uplink,         ///< leaf first is slow to and from other leaves
  uplink_dir,     ///< leaf first is slow to (`is_out`) or from other leaves
  too_fast,       ///< first and second are faster than the fleet allows: another path
  unsteady,       ///< node first is slow in spells
  split,          ///< the nodes are of two speeds: which is right, a baseline has to say
  fleet,          ///< all nodes are below (or above) the baseline
  either,         ///< of two nodes: first, second or what is between them
  configuration,  ///< a library is slow, or fails, where the bare transport does not: of `members`
};
[[nodiscard]] std::string_view to_string(Class what);  ///< "nic-out", "link-dir", "too fast"

/// One test of a suspect, in the order of time.
struct TestOverTime {
  int visit = 0;       ///< 0: of the first pass; else of that visit of repeats
  int round = 0;       ///< of the first pass, or within the visit
  bool is_out = true;  ///< it sends; of a link, from first to second
  double off = 0;      ///< logarithm of the ratio to the level, less what the round had in common
};

struct Finding {
  Class what = Class::none;
  int first = -1;       ///< a node; of uplink and uplink_dir a leaf; -1: the cluster
  int second = -1;      ///< the other node of a link; of uplink_dir the other leaf, if there are two
  bool is_out = true;   ///< of uplink_dir
  Judgement judgement;  ///< verdict, middle, low and high; these are 0 and empty if there is no speed
  int tests = 0;        ///< that the judgement is made of
  int visits = 0;
  int partners = 0;          ///< with so many good partners the node was measured
  int slow_partners = 0;     ///< and with so many of these it was slow
  std::vector<int> thirds;   ///< nodes with which the ends of a link, or a hung or dead node, were tried
  std::vector<int> members;  ///< of split: the nodes of the slower group
  std::string detail;        ///< of wrong and dead: what the crew said
  std::string stage = {};    ///< that found it
  std::vector<TestOverTime> over_time = {};  ///< of nodes and links that pairs have found
  Judgement bare = {};                       ///< of configuration: the bare transport's, beside that of the library
  int rail = kNoRail;                        ///< on which alone it was found; kNoRail: on all, or on the only one
};

/// Findings that are about the node itself, not about a link or a leaf.
[[nodiscard]] bool is_of_node(const Finding& finding);
[[nodiscard]] bool is_of_link(const Finding& finding);
[[nodiscard]] bool is_of_leaf(const Finding& finding);
[[nodiscard]] bool is_of_library(const Finding& finding);
/// About this node itself.
[[nodiscard]] bool is_about(const Finding& finding, int node);
/// Whether it tells why a node is slow with others, though the node itself need not be: a slow uplink of its leaf, a
/// slow link of it, or a fleet of two speeds.
[[nodiscard]] bool excuses(const Finding& finding, int node, int leaf);

/// Whether its nodes do not work, or not with each other: a group of them would end.
[[nodiscard]] bool is_broken(const Finding& finding);

/// The gravest first: an order of findings.
[[nodiscard]] int gravity_of(const Finding& finding);

/// The finding of a group whose nodes played `tests` tests together, the last of which failed.
[[nodiscard]] Finding finding_of_group(Group group, const Outcome& failure, int tests);

/// One node, in logarithms of ratios to the fleet.
struct NodeFigures {
  Verdict verdict = Verdict::pass;
  std::optional<double> out, in, alone, latency;  ///< empty: not measured
  int worst_partner = -1;
  std::optional<double> worst;  ///< with this partner, in the slower direction
  int tests = 0;
};

struct Findings {
  std::vector<Finding> parts;      ///< what is not PASS, gravest first
  std::vector<NodeFigures> nodes;  ///< by node
  std::vector<double> cells;     ///< [sender * nodes + receiver], logarithm of the ratio to the level; NaN: not tested
  std::vector<int> leaves = {};  ///< by node, if the speeds have shown them; empty: they are those of the crew
  double level_near = 0;         ///< logarithm of bytes per second within a leaf, NaN if not measured
  double level_far = 0;          ///< between leaves
  double level_latency = 0;      ///< logarithm of 1/s
  double spread_of_nodes = 0;    ///< standard deviations of logarithms
  double spread_of_repeats = 0;
  int pairs = 0;         ///< of all nodes
  int tested_pairs = 0;  ///< in both directions
  int rounds = 0;        ///< of the first pass, in which this many were to be played:
  int planned_rounds = 0;
  int repeats = 0;  ///< rounds of repeats
  bool is_interrupted = false;
};

inline constexpr std::string_view kRepeatStage = "repeats";  ///< of the stage pairs, where suspects play again

/// Told of what happens, and asked whether to go on. Called in the thread that examines.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before a round: `done` of `planned`; of repeats `planned` is an upper bound.
  virtual void on_round(std::string_view /*stage*/, int /*done*/, int /*planned*/) {}
  /// The findings are then of what is done.
  [[nodiscard]] virtual bool is_stopped() { return false; }
};

/// Speeds of a fleet that was accepted before, as logarithms of bytes per second.
struct Baseline {
  double near = 0, far = 0;
  std::size_t bytes = 0;                       ///< of a message; 0: the result does not say
  std::map<std::string, Baseline> rails = {};  ///< by name; empty: the run had none
};

struct PairsPlan {
  Limits limits = {};
  bool is_full = false;           ///< all pairs, however many nodes there are
  bool are_leaves_known = true;   ///< else the speeds of the first pass may show them
  std::size_t bytes = 1 << 20;    ///< of a bandwidth test
  std::size_t latency_bytes = 8;  ///< of a latency test
  std::vector<int> skipped = {};  ///< nodes that must not play
  std::optional<Baseline> baseline = {};
  std::uint64_t seed = 1;  ///< of the order of pairs and of the choice of controls
};

/// Rounds of the first pass, and of repeats at most, in usual noise.
struct PairsForecast {
  int rounds = 0, repeats = 0;
};
[[nodiscard]] PairsForecast pairs_forecast(int nodes, const PairsPlan& plan);

/// Measures pairs until each part has a verdict, or until there is no hope of one. Requires: two nodes that are there.
[[nodiscard]] Findings examine_pairs(Crew& crew, const PairsPlan& plan, Observer& observer);

}  // namespace tutti::harness::accept
