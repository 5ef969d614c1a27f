// SPDX-License-Identifier: Apache-2.0
// Repeats: suspects play again with good partners, beside pairs of good nodes, in visits that lie apart in time. A
// repeat is what the suspect's test was off by, less what its controls were off by in the same round. So what a round,
// or the path between two leaves, costs everybody is no fault of the suspect.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "harness/accept/cells.h"
#include "harness/accept/findings.h"
#include "harness/accept/pair_player.h"
#include "harness/accept/screen.h"
#include "harness/accept/verdict.h"
#include "harness/floors.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::accept {

/// A suspect in one direction. A link goes from `first` to `second`.
struct SuspectPart {
  enum class Kind { node, uplink, link };
  Kind kind = Kind::node;
  int first = 0, second = 0;
  Way way = Way::out;
  friend auto operator<=>(const SuspectPart&, const SuspectPart&) = default;
};

struct Evidence {
  std::vector<std::vector<double>> visits;  ///< repeats of each visit
  std::set<int> thirds;                     ///< of a link: with whom its ends were tried
  [[nodiscard]] int tests() const;
};

class Repeats {
 public:
  static constexpr int kVisits = 8;
  static constexpr int kPerVisit = 12;  ///< at usual noise; up to three times as many

  /// All outlive it. `on_round` is told the number of rounds of repeats so far.
  Repeats(PairPlayer& player, const PairsPlan& plan, const Suspects& suspects, const NoiseOfTests& noise,
          std::function<void(int done)> on_round);

  /// Visits until each suspect is decided, at most kVisits times.
  void run();

  [[nodiscard]] const std::map<SuspectPart, Evidence>& evidence() const { return evidence_; }
  [[nodiscard]] Judgement judgement_of(const SuspectPart& part) const;
  /// The standard error of the level that all are compared with, as a logarithm. Healthy nodes differ, and there are
  /// only so many of them.
  [[nodiscard]] double level_error() const { return level_error_; }
  [[nodiscard]] int rounds() const { return rounds_; }
  /// Good nodes in an order drawn anew, without `busy` ones.
  [[nodiscard]] std::vector<int> good_nodes(const std::set<int>& busy);

 private:
  [[nodiscard]] bool is_clean(int node) const;
  [[nodiscard]] bool has_good_uplinks(int node) const;
  [[nodiscard]] double expected(const Transfer& transfer) const;
  void set_offsets();
  [[nodiscard]] std::vector<int> shuffled(std::vector<int> nodes);
  /// A partner out of `free`: of the own leaf if it has any clean node, so that no uplink is in between. -1: none.
  [[nodiscard]] int partner_of(int node, const std::vector<int>& free) const;
  /// If the own leaf has no clean node: one of its suspects. -1: none.
  [[nodiscard]] int suspect_beside(int node, const std::set<int>& busy) const;
  /// What each pair is off by, there and back, less its controls.
  [[nodiscard]] std::vector<BothWays> differences(const Round& pairs);
  void add(const SuspectPart& part, double value);

  void visit();
  void repeat_nodes();
  void repeat_uplinks();
  void repeat_links();
  void look_at_links(const Round& pairs, bool with_cross);
  void take_off_ends();
  void settle();
  [[nodiscard]] std::set<int> open(SuspectPart::Kind kind) const;
  [[nodiscard]] Round open_links() const;

  PairPlayer& player_;
  const PairsPlan& plan_;
  const Suspects& suspects_;
  std::function<void(int done)> on_round_;
  SplitMix random_;
  std::vector<BothWays> offsets_;  ///< by node: what good nodes are above or below the level
  double level_error_ = 0;
  std::map<SuspectPart, Evidence> evidence_;
  std::set<SuspectPart> open_;
  /// By link, what its ends reached with third nodes in this visit: as sender, as receiver.
  std::map<SuspectPart, std::pair<std::vector<double>, std::vector<double>>> beside_;
  int per_visit_ = kPerVisit;
  int visits_ = 0;
  int rounds_ = 0;
};

}  // namespace tutti::harness::accept
