// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cases/transports.h"

namespace tutti::harness::cases {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TopologySpec over_tcp() { return {.transport = "tcp"}; }
TopologySpec on_hosts(const char* hosts) {
  return {.transport = "tcp", .options = {.hosts = parse_hosts(hosts).value()}};
}

Topology made(const TopologySpec& spec, int ranks) { return topology_of(spec, ranks, {}).value(); }
std::string refused(const TopologySpec& spec, int ranks) {
  return std::string(topology_of(spec, ranks, {}).status().message());
}

TEST(Topology, HasTheUsualTransportOfItsRanks) {
  for (const RanksAs ranks_as : {RanksAs::processes, RanksAs::threads, RanksAs::tasks, RanksAs::blocks}) {
    const Topology topology = made({.ranks_as = ranks_as}, 3);
    EXPECT_EQ(topology.transport->name, usual_transport(ranks_as));
    EXPECT_EQ(topology.ranks(), 3);
    EXPECT_FALSE(topology.spans_hosts());
    EXPECT_THAT(topology.host_names, IsEmpty());
  }
}

TEST(Topology, SaysWhatRunsTheRanksAndWhereTheirBuffersLie) {
  EXPECT_EQ(made({}, 2).ranks_on, RanksOn::cores);
  EXPECT_FALSE(made({}, 2).has_gpu_memory());
  const Topology blocks = made({.ranks_as = RanksAs::blocks}, 2);
  EXPECT_EQ(blocks.ranks_on, RanksOn::shared_device);
  EXPECT_TRUE(blocks.has_gpu_memory());
  const Topology each = made({.transport = "cuda"}, 2);
  EXPECT_EQ(each.ranks_on, RanksOn::own_device);
  EXPECT_TRUE(each.has_gpu_memory());
  const Topology stands_for_it = made({.transport = "cuda", .options = {.device = RunsOn::host}}, 2);
  EXPECT_TRUE(stands_for_it.on_devices());
  EXPECT_FALSE(stands_for_it.has_gpu_memory());
}

TEST(Topology, RanksThatShareNoMemoryAreHostsOfTheirOwn) {
  EXPECT_EQ(made(over_tcp(), 4).hosts.count(), 4);
  TopologySpec two = over_tcp();
  two.options.pretended_hosts = 2;
  const Topology topology = made(two, 5);
  EXPECT_EQ(topology.hosts.count(), 2);
  EXPECT_THAT(topology.hosts.ranks_on(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(topology.host_names, IsEmpty()) << "all on this machine";
  EXPECT_THAT(topology.domain_shape(0).ranks_on, IsEmpty());
}

TEST(Topology, NamesTheHostsThatHaveRanks) {
  const Topology topology = made(on_hosts("a:2,b:2,c:1"), 2);
  EXPECT_THAT(topology.host_names, ElementsAre("a", "b"));
  EXPECT_THAT(topology.domain_shape(0).ranks_on, ElementsAre(1, 1));
  EXPECT_THAT(made(on_hosts("a:2,b:2"), 3).domain_shape(0).ranks_on, ElementsAre(2, 1));
}

TEST(Topology, SaysWhatTheChoiceOfAnAlgorithmAsks) {
  EXPECT_EQ(made({}, 2).place(), RanksPlace::one_host);
  EXPECT_EQ(made(over_tcp(), 2).place(), RanksPlace::several_hosts);
  EXPECT_EQ(made({.ranks_as = RanksAs::blocks}, 2).place(), RanksPlace::device);
}

TEST(Topology, HasTheTableByWhichAutoChooses) {
  Conditions conditions;
  const std::string text =
      "collective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,algorithm,segment,stores,source\n"
      "all_reduce,host,any,any,1,any,0,any,ring,64K,plain,formula\n"
      "all_reduce,hosts,any,any,1,any,0,any,ring,0,tried,simulated tree\n";
  ASSERT_TRUE(condition_of_option("--table")->read(conditions, "t.csv\n" + text).is_ok());
  EXPECT_EQ(table_of(conditions).text(), text);
  EXPECT_EQ(table_facts(conditions).at("name"), "t.csv");
  EXPECT_EQ(table_of(Conditions()).name(), "shipped");
  Case one;
  one.collective = Collective::all_reduce;
  one.op = Op::sum;
  one.ranks = 2;
  one.bytes = 8;
  const Topology here = made(topology_spec_of(one, conditions), 2);
  EXPECT_EQ(chosen_algorithm(one, here, 2), "ring+64K+plain");
  EXPECT_TRUE(is_chosen_by_formula(one, here, 2));
  one.transport = "tcp";
  const Topology apart = made(topology_spec_of(one, conditions), 2);
  EXPECT_EQ(choice_for(one, apart, 2).simulated_on, "tree");
  EXPECT_FALSE(is_chosen_by_formula(one, apart, 2));
}

TEST(Topology, RefusesATransportThatIsNotThereOrDoesNotServeTheRanks) {
  EXPECT_THAT(refused({.transport = "tpc"}, 2), HasSubstr("did you mean 'tcp'?"));
  EXPECT_EQ(refused({.ranks_as = RanksAs::tasks, .transport = "shm"}, 2),
            "transport 'shm' with tasks: did you mean 'local'?");
}

TEST(Topology, RefusesHostsThatDoNotFit) {
  EXPECT_EQ(refused(on_hosts("a:1,b:1"), 3), "--ranks: 3 on a:1,b:1, which have room for 2: 1 to 2, did you mean 2?");
  TopologySpec spec = on_hosts("a:1,b:1");
  spec.transport = "shm";
  EXPECT_EQ(refused(spec, 2),
            "--hosts: 'a:1,b:1' with transport shm, whose ranks share memory: did you mean --transports tcp?");
  spec = on_hosts("a:1,b:1");
  spec.ranks_as = RanksAs::threads;
  EXPECT_EQ(refused(spec, 2), "--hosts: 'a:1,b:1' with threads: did you mean --ranks-as processes?");
  spec.options.pretended_hosts = 2;
  EXPECT_EQ(refused(spec, 2), "--pretend-hosts: has no meaning with --hosts a:1,b:1, which are real ones");
}

TEST(Topology, RefusesMorePretendedHostsThanRanks) {
  TopologySpec spec = over_tcp();
  spec.options.pretended_hosts = 3;
  EXPECT_EQ(refused(spec, 1), "--pretend-hosts: '3' with 1 rank: 1 to 1 hosts, did you mean 1?");
  EXPECT_EQ(least_ranks_of(spec), 3);
  spec.transport = "shm";
  EXPECT_EQ(refused(spec, 4),
            "--pretend-hosts: '3' has no meaning with transport shm, whose ranks share memory: did you mean "
            "--transports tcp?");
}

TEST(Topology, RefusesOptionsOfThreadBlocksForOtherRanks) {
  EXPECT_EQ(refused({.options = {.device = RunsOn::host}}, 2),
            "--device: 'host' has no meaning with --ranks-as processes, whose ranks are no thread blocks: did you mean "
            "--ranks-as blocks?");
  EXPECT_EQ(refused({.ranks_as = RanksAs::blocks, .options = {.gpus = 3}}, 2),
            "--gpus: 3 of them are more than 2 ranks: did you mean 2, or --ranks 3?");
  EXPECT_EQ(refused({.transport = "cuda", .options = {.gpus = 2}}, 2),
            "--gpus: '2' of ranks that have a GPU each: did you mean --ranks 2?");
  EXPECT_TRUE(topology_of({.transport = "cuda", .options = {.device = RunsOn::host, .lanes = 2}}, 2, {}).is_ok());
}

TEST(Topologies, AreMadeOnceForEachNumberOfRanksAndTransport) {
  const Conditions conditions;
  Topologies topologies(conditions, {});
  Cell cell{.transport = "tcp", .ranks = 2};
  const Topology* const first = topologies.of(cell).value();
  cell.bytes = 4096;
  EXPECT_EQ(topologies.of(cell).value(), first);
  cell.ranks = 3;
  EXPECT_EQ(topologies.of(cell).value()->ranks(), 3);
  cell.transport = "tpc";
  EXPECT_EQ(topologies.of(cell).status().code(), Code::invalid_argument);
}

TEST(Topology, AnAlgorithmForEqualHostsIsFlatOnOthers) {
  const auto is_flat = [](const char* hosts, int ranks, const char* algorithm = "two_level") {
    Case one;
    one.collective = Collective::all_reduce;
    one.algorithm = algorithm;
    one.transport = "tcp";
    one.ranks = ranks;
    return is_flat_on_hosts(one, made(on_hosts(hosts), ranks));
  };
  EXPECT_TRUE(is_flat("a:2,b:1", 3));
  EXPECT_TRUE(is_flat("a:2,b:2", 3)) << "that many are dealt out";
  EXPECT_FALSE(is_flat("a:2,b:1", 3, "ring"));
  EXPECT_FALSE(is_flat("a:2,b:1", 3, "none")) << "a reference's";
  EXPECT_FALSE(is_flat("a:2,b:2", 4));
  EXPECT_FALSE(is_flat("a:1,b:1,c:1", 3)) << "each rank is on a host of its own";
  EXPECT_FALSE(is_flat("a:3,b:1", 1)) << "one host";
}

TEST(Topology, PretendedHostsMayBeUnequalToo) {
  Case one;
  one.collective = Collective::barrier;
  one.algorithm = "two_level";
  one.transport = "tcp";
  one.ranks = 3;
  TopologySpec spec = over_tcp();
  spec.options.pretended_hosts = 2;
  EXPECT_TRUE(is_flat_on_hosts(one, made(spec, 3)));
  one.ranks = 4;
  EXPECT_FALSE(is_flat_on_hosts(one, made(spec, 4)));
}

}  // namespace
}  // namespace tutti::harness::cases
