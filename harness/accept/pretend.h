// SPDX-License-Identifier: Apache-2.0
// A pretended cluster. A transfer is as fast as the slowest of its sender, receiver and uplinks allows. To this come
// what the link itself loses, what spells of slowness cost at the moment, and the noise of one measurement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/floors.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::accept {

/// What may be wrong with a cluster.
enum class Trouble {
  node,        ///< first sends, receives and computes slowly
  nic,         ///< first sends and receives slowly
  nic_out,     ///< first sends slowly
  nic_in,      ///< first receives slowly
  link,        ///< first and second are slow with each other
  link_out,    ///< first is slow to second
  fast,        ///< first and second are faster with each other: `share` faster
  uplink,      ///< leaf first is slow to and from other leaves
  uplink_out,  ///< leaf first is slow to other leaves
  jam,         ///< what goes between leaves first and second is slow in spells, a third of the time
  fleet,       ///< all are slow
  unsteady,    ///< first is slow in spells, half of the time
  wrong,       ///< second receives wrong data from first
  hung,        ///< first and second hang with each other
  dead,        ///< first does not answer
  crowd,       ///< first is slow when it sends and receives at once, and in no quiet pair
  absent,      ///< first never comes
};
[[nodiscard]] bool hits_leaves(Trouble trouble);
[[nodiscard]] bool hits_two(Trouble trouble);
[[nodiscard]] bool has_share(Trouble trouble);

struct Fault {
  Trouble trouble = Trouble::nic;
  int first = 0;
  int second = 0;
  double share = 0;            ///< of the speed that is lost, 0 to below 1
  int rail = kNoRail;          ///< on which alone it is; kNoRail: on all
  bool is_of_library = false;  ///< what is bare does not have it
};

/// How one measurement and healthy parts vary, as fractions of a speed.
struct Noise {
  double measurement = 0.02;           ///< standard deviation
  bool has_heavy_tails = false;        ///< Student's t with 3 degrees of freedom in place of a normal distribution
  double nodes = 0.01;                 ///< standard deviation of healthy nodes
  double links = 0.005;                ///< and of healthy links
  double outliers = 0.01;              ///< share of measurements that lose 10 to 70 %
  double node_spells = 0;              ///< share of the time that each node is at 0.6, in spells of 8 tests
  double fleet_spells = 0;             ///< share of the time that all are at 0.64, in spells of 30 tests
  std::vector<double> multiples = {};  ///< by node: its measurements' deviation is so many times larger; empty: 1
};
struct NamedNoise {
  std::string_view name;
  Noise noise;
};
/// quiet, typical, heavy and states.
[[nodiscard]] const std::vector<NamedNoise>& noises();

struct PretendedCluster {
  int nodes = 8;
  int leaf_size = 4;
  bool tells_leaves = true;    ///< else an acceptance is not told which leaf a node hangs on
  double spine_cost = 0.1;     ///< what a transfer between leaves loses always
  double generation = 0;       ///< share of the nodes, the last ones, that are older
  double generation_cost = 0;  ///< share of the speed that older nodes lose
  Noise noise;
  std::vector<Fault> faults;
  std::uint64_t seed = 1;
  std::vector<std::string> rails = {};  ///< names; empty: one without a name
  std::string library = {};             ///< that plays in place of tutti; empty: none
};

class PretendedCrew final : public Crew {
 public:
  /// Nodes, leaves and shares of `cluster` are in range (asserted).
  explicit PretendedCrew(PretendedCluster cluster);
  [[nodiscard]] int nodes() const override { return cluster_.nodes; }
  [[nodiscard]] std::string name_of(int node) const override;
  [[nodiscard]] int leaf_of(int node) const override { return node / cluster_.leaf_size; }
  [[nodiscard]] std::string absence_of(int node) const override;
  [[nodiscard]] std::vector<std::string> rails() const override { return cluster_.rails; }
  [[nodiscard]] std::string absence_of_rail(int node, int rail) const override;
  [[nodiscard]] std::string library() const override { return cluster_.library; }
  [[nodiscard]] std::vector<std::vector<Outcome>> play(const std::vector<Group>& groups,
                                                       const std::vector<Test>& tests) override;
  void pause() override;

 private:
  /// What each part of one rail adds to the logarithm of a speed.
  struct Rail {
    std::vector<double> out, in;                ///< by node
    std::vector<double> uplink_out, uplink_in;  ///< by leaf
    double fleet = 0;
  };

  [[nodiscard]] double normal();
  [[nodiscard]] double noise_of(int one, int other);
  void add_rail();
  void put_in(const Fault& fault);
  void put_in(const Fault& fault, Rail& rail);
  /// The rail on which the test plays.
  [[nodiscard]] const Rail& rail() const { return (is_bare_ ? bare_rails_ : rails_)[at(std::max(rail_, 0))]; }
  /// Whether the test that plays meets the fault.
  [[nodiscard]] bool is_here(const Fault& fault) const {
    return (fault.rail == kNoRail || fault.rail == rail_) && !(fault.is_of_library && is_bare_);
  }
  /// Time goes on by a test.
  void step();
  /// Whether a spell that lasts `length` tests, and is on for `share` of the time, goes on or begins.
  [[nodiscard]] bool is_in_spell(bool was_in_spell, double share, double length);
  [[nodiscard]] double link_of(const Transfer& transfer) const;
  /// What is slow at the moment, of a transfer.
  [[nodiscard]] double spells_of(const Transfer& transfer) const;
  [[nodiscard]] Outcome transfer_of(const Transfer& transfer);
  [[nodiscard]] Outcome latency_of(const Transfer& transfer);
  [[nodiscard]] Outcome alone_of(int node);
  [[nodiscard]] Outcome ring_of(const Group& group);
  /// A sum, an exchange of all with all, a soak, or a training.
  [[nodiscard]] Outcome collective_of(const Group& group, const Test& test);
  /// What its crowds cost a node among `nodes` that play.
  [[nodiscard]] double crowds_of(int node) const;
  [[nodiscard]] Outcome outcome_of(const Group& group, const Test& test);

  PretendedCluster cluster_;
  SplitMix random_;
  std::vector<Rail> rails_;         ///< at least one
  std::vector<Rail> bare_rails_;    ///< the same without what is of the library
  int rail_ = 0;                    ///< of the test that plays; of a node alone there is none
  bool is_bare_ = false;            ///< the test that plays
  std::vector<double> alone_;       ///< by node, what it adds to the logarithm of a speed
  std::vector<bool> node_spells_;   ///< by node, at the moment
  std::vector<bool> fault_spells_;  ///< by fault
  bool is_fleet_in_spell_ = false;
};

}  // namespace tutti::harness::accept
