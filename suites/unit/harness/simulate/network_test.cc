// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/simulate/predictor.h"
#include "harness/simulate/routes.h"
#include "harness/simulate/walk.h"
#include "impl/algorithms/algorithm.h"

namespace tutti::harness::simulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One rank on each node, 1 ns a byte and nothing else.
Machine bare(Network network) {
  Machine machine;
  machine.model.far.wire = SizeTable::line(0, 1);
  machine.network = std::move(network);
  return machine;
}

std::vector<std::string> route(const Routes& routes, int from, int to) {
  std::vector<int> links;
  routes.find(from, to, links);
  std::vector<std::string> names;
  for (const int link : links) names.push_back(routes.name(link));
  return names;
}

/// Every rank sends a block to the rank `distance` further on.
Schedule shift(int ranks, int distance) {
  Schedule schedule{.problem = {.collective = Collective::sendrecv, .ranks = ranks}, .name = "shift"};
  schedule.step_count = [](int) { return 2; };
  schedule.step = [ranks, distance](int rank, int index) {
    if (index == 0) return move({channel((rank + distance) % ranks)}, {input(rank, unit(0))});
    return move({output(rank, unit(0))}, {channel((rank + ranks - distance) % ranks)});
  };
  return schedule;
}

double ns_of_shift(int ranks, int distance, const Machine& machine, int period = 0) {
  return walk(shift(ranks, distance), 1000, machine, {.order = Order::time, .period = period}).value().ns;
}

TEST(Network, RoutesOfAFatTree) {
  const Machine machine = bare({.shape = Shape::fat_tree, .leaf = 4});
  const Routes routes(machine, 16, 0);
  EXPECT_THAT(route(routes, 0, 3), IsEmpty());
  EXPECT_THAT(route(routes, 0, 5), ElementsAre("uplink of leaf A", "downlink of leaf B"));
}

TEST(Network, RoutesOfADragonfly) {
  const Machine machine = bare({.shape = Shape::dragonfly, .leaf = 4});
  const Routes routes(machine, 16, 0);
  EXPECT_THAT(route(routes, 4, 7), IsEmpty());
  EXPECT_THAT(route(routes, 4, 12), ElementsAre("links from group B to D"));
}

TEST(Network, RoutesOfRails) {
  Machine machine = bare({.shape = Shape::rails, .leaf = 2});
  machine.ranks_per_node = 2;
  const Routes routes(machine, 8, 0);
  EXPECT_THAT(route(routes, 0, 2), IsEmpty()) << "the same rail of the same leaf";
  EXPECT_THAT(route(routes, 0, 3), ElementsAre("uplink of rail 0 of leaf A", "downlink of rail 1 of leaf A"));
  EXPECT_THAT(route(routes, 1, 5), ElementsAre("uplink of rail 1 of leaf A", "downlink of rail 1 of leaf B"));
}

TEST(Network, RoutesOfATorusGoTheShorterWayAround) {
  const Machine machine = bare({.shape = Shape::torus, .nodes = 16, .sides = {4, 4}});
  const Routes routes(machine, 16, 0);
  EXPECT_THAT(route(routes, 0, 3), ElementsAre("link -x of node1"));
  EXPECT_THAT(route(routes, 0, 6), ElementsAre("link +x of node1", "link +x of node2", "link +y of node3"));
  EXPECT_THAT(route(routes, 0, 12), ElementsAre("link -y of node1"));
}

TEST(Network, ATaperedLeafLetsOutHalf) {
  const auto tree = [](double taper) { return bare({.shape = Shape::fat_tree, .leaf = 4, .taper = taper}); };
  EXPECT_EQ(ns_of_shift(16, 4, tree(1)), 1750) << "the last of four comes into an uplink that three others keep";
  EXPECT_EQ(ns_of_shift(16, 4, tree(2)), 2500);
  EXPECT_EQ(ns_of_shift(16, 1, tree(2)), 1000) << "one message leaves each leaf";
}

TEST(Network, TwoGroupsShareTheirLinks) {
  Machine machine = bare({.shape = Shape::dragonfly, .leaf = 4});
  EXPECT_EQ(ns_of_shift(16, 4, machine), 4000);
  machine.network.links = 4;
  EXPECT_EQ(ns_of_shift(16, 4, machine), 1750);
}

TEST(Network, MessagesOfATorusShareLinks) {
  const Machine machine = bare({.shape = Shape::torus, .nodes = 8, .sides = {8}});
  EXPECT_EQ(ns_of_shift(8, 1, machine), 1000);
  EXPECT_GE(ns_of_shift(8, 2, machine), 2000);
}

TEST(Network, RanksShareTheInterfacesOfANode) {
  Machine machine = bare({});
  machine.ranks_per_node = 4;
  EXPECT_EQ(ns_of_shift(16, 4, machine), 1000);
  machine.rails = 2;
  EXPECT_EQ(ns_of_shift(16, 4, machine), 2000);
  machine.rails = 1;
  EXPECT_EQ(ns_of_shift(16, 4, machine), 4000);
}

TEST(Network, HopsTakeTime) {
  Machine machine = bare({.shape = Shape::fat_tree, .leaf = 4, .hop = 300});
  EXPECT_EQ(ns_of_shift(16, 1, machine), 1300);
  machine.network = {.shape = Shape::torus, .nodes = 8, .hop = 300, .sides = {8}};
  EXPECT_EQ(ns_of_shift(8, 1, machine), 1000) << "one link is no hop more";
}

TEST(Network, StridedNeighboursLieOnDifferentLeaves) {
  Machine machine = bare({.shape = Shape::fat_tree, .nodes = 16, .leaf = 4, .placing = Placing::strided});
  const Routes routes(machine, 16, 0);
  for (int rank = 0; rank + 1 < 16; ++rank) EXPECT_NE(routes.node_at(rank) / 4, routes.node_at(rank + 1) / 4);
}

TEST(Network, EveryPlacementGivesEachNodeOnce) {
  for (const Placing placing : {Placing::contiguous, Placing::strided, Placing::random}) {
    const Machine machine = bare({.shape = Shape::fat_tree, .nodes = 22, .leaf = 4, .placing = placing});
    const Routes routes(machine, 22, 0);
    std::set<int> nodes;
    for (int rank = 0; rank < 22; ++rank) nodes.insert(routes.node_at(rank));
    EXPECT_EQ(nodes.size(), 22U);
    EXPECT_EQ(*nodes.rbegin(), 21);
  }
}

/// Links, and interfaces that are shared, are the same for one block of ranks as for all of them. What happens at one
/// time is taken in the order of ranks, which is another one around the end of all ranks.
TEST(Network, OneBlockOfRanksIsWhatAllOfThemDo) {
  for (const Shape shape : {Shape::one_switch, Shape::fat_tree, Shape::dragonfly, Shape::rails}) {
    for (const int rails : {1, 2}) {
      Machine machine = example_machine();
      machine.ranks_per_node = 2;
      machine.rails = rails;
      machine.network = {.shape = shape, .leaf = 2, .taper = 2, .links = 0.5, .hop = 300};
      for (const std::string_view name : {"ring", "two_level", "circulant"}) {
        const Schedule schedule = schedule_of(*find_algorithm(Collective::all_reduce, name).value(),
                                              {.collective = Collective::all_reduce, .ranks = 32, .ranks_per_host = 2});
        const auto all = walk(schedule, 1 << 16, machine, {.order = Order::time}).value();
        const auto some = walk(schedule, 1 << 16, machine, {.order = Order::time, .period = 4}).value();
        EXPECT_NEAR(some.ns / all.ns, 1, 0.002) << name << " shape " << static_cast<int>(shape) << " rails " << rails;
      }
    }
  }
}

TEST(Fault, ASlowPartCostsWhatCrossesIt) {
  const auto with = [](SlowFault fault, Network network = {}) {
    Machine machine = bare(std::move(network));
    machine.faults = {fault};
    return ns_of_shift(16, 4, machine);
  };
  EXPECT_EQ(with({.part = SlowPart::node, .first = 3, .share = 0.5}), 1000) << "its processor has nothing to do";
  EXPECT_EQ(with({.part = SlowPart::nic, .first = 3, .share = 0.5}), 2000);
  EXPECT_EQ(with({.part = SlowPart::nic_out, .first = 3, .share = 0.5}), 2000);
  EXPECT_EQ(with({.part = SlowPart::link, .first = 7, .second = 3, .share = 0.5}), 2000);
  EXPECT_EQ(with({.part = SlowPart::link_out, .first = 7, .second = 3, .share = 0.5}), 1000) << "nothing goes there";
  EXPECT_EQ(with({.part = SlowPart::rail, .first = 0, .share = 0.75}), 4000);
  const Network tree{.shape = Shape::fat_tree, .leaf = 4};
  EXPECT_EQ(with({.part = SlowPart::uplink, .first = 1, .share = 0.5}, tree), 2500);
}

TEST(Fault, OfANodeSlowsItsProcessors) {
  Machine machine = bare({});
  machine.model.far.send = SizeTable::line(100, 0);
  machine.faults = {{.part = SlowPart::node, .first = 3, .share = 0.5}};
  EXPECT_EQ(ns_of_shift(16, 4, machine), 1200);
}

TEST(Fault, OnAPartThatIsNotThereIsRefused) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring").value();
  Machine machine = bare({});
  machine.faults = {{.part = SlowPart::nic, .first = 8, .share = 0.5}};
  const auto refused = Predictor::make(ring, {.collective = Collective::all_reduce, .ranks = 8}, machine);
  EXPECT_EQ(refused.status().code(), Code::unavailable);
  EXPECT_TRUE(Predictor::make(ring, {.collective = Collective::all_reduce, .ranks = 9}, machine).is_ok());
}

}  // namespace
}  // namespace tutti::harness::simulate
