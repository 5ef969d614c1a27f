// SPDX-License-Identifier: Apache-2.0
// A pretended cluster. A transfer is as fast as the slowest of its sender, receiver and uplinks allows. To this come
// what the link itself loses and the noise of one measurement.
#pragma once

#include <string>
#include <vector>

#include "harness/accept/crew.h"
#include "harness/floors.h"
#include "harness/statistics/splitmix.h"

namespace tutti::harness::accept {

/// What may be wrong with a cluster. `first` is a node; it is a leaf for uplink and uplink_out.
enum class Trouble {
  nic,         ///< sends and receives slowly
  nic_out,     ///< sends slowly
  nic_in,      ///< receives slowly
  link,        ///< first and second are slow with each other
  link_out,    ///< first is slow to second
  uplink,      ///< the leaf is slow to and from other leaves
  uplink_out,  ///< the leaf is slow to other leaves
  wrong,       ///< second receives wrong data from first
  hung,        ///< first and second hang with each other
  dead,        ///< first does not answer
};

struct Fault {
  Trouble trouble = Trouble::nic;
  int first = 0;
  int second = 0;    ///< of a fault between two nodes
  double share = 0;  ///< of the speed that is lost, 0 to below 1
};

/// Of one measurement and of healthy parts, as fractions of a speed.
struct Noise {
  double measurement = 0.02;      ///< standard deviation
  double nodes = 0.01;            ///< standard deviation of healthy nodes
  double outliers = 0.01;         ///< share of measurements that lose 10 to 70 %
  std::vector<double> multiples;  ///< by node: its measurements' deviation is so many times larger; empty: 1
};

struct PretendedCluster {
  int nodes = 8;
  int leaf_size = 4;
  double spine_cost = 0.1;  ///< what a transfer between leaves loses always
  Noise noise;
  std::vector<Fault> faults;
  std::uint64_t seed = 1;
};

class PretendedCrew final : public Crew {
 public:
  /// Nodes, leaves and shares of `cluster` are in range (asserted).
  explicit PretendedCrew(PretendedCluster cluster);
  [[nodiscard]] int nodes() const override { return cluster_.nodes; }
  [[nodiscard]] std::string name_of(int node) const override;
  [[nodiscard]] int leaf_of(int node) const override { return node / cluster_.leaf_size; }
  [[nodiscard]] std::vector<Outcome> play(const Round& round) override;

 private:
  [[nodiscard]] double normal();
  [[nodiscard]] double noise_of(const Transfer& transfer);
  void put_in(const Fault& fault);
  [[nodiscard]] Outcome outcome_of(const Transfer& transfer);

  PretendedCluster cluster_;
  SplitMix random_;
  std::vector<double> out_, in_;                ///< by node, what it adds to the logarithm of a speed
  std::vector<double> uplink_out_, uplink_in_;  ///< by leaf
};

}  // namespace tutti::harness::accept
