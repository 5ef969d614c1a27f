// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/machine_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::simulate {
namespace {

using testing::HasSubstr;

constexpr const char* kNode = "[node]\nflag = 1\nreduce = 0\ncopy = 0\nread = 0\n";
constexpr const char* kFar = "[far]\nlatency = 10\nsend = 1\nreceive = 2\nwire = [[1, 0], [101, 600]]\n";

std::string file(const std::string& far = kFar, const std::string& node = kNode) {
  return "name = \"m\"\nranks_per_node = 2\n" + far + node;
}

std::string refusal_of(const std::string& text) {
  const auto read = machine_from_toml(text);
  EXPECT_EQ(read.status().code(), Code::invalid_argument) << text;
  return read.status().message();
}

TEST(MachineFile, OfTheExampleIsReadBack) {
  const std::string text = machine_toml(example_machine());
  const auto read = machine_from_toml(text);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(machine_toml(read.value()), text);
  EXPECT_EQ(read.value().model.far.wire.at(12345), example_machine().model.far.wire.at(12345));
  EXPECT_EQ(read.value().model.eager_bytes, 16384);
}

/// The comment of a file has the parameters as its source has them, and the tables have them as the model does.
void expect_parameters(const std::string& text, const Model& model) {
  const std::size_t at = text.find("# LogGPS: ");
  if (at == std::string::npos) return;
  double latency = 0, overhead = 0, gap = 0, byte = 0;
  ASSERT_EQ(std::sscanf(text.c_str() + at, "# LogGPS: L = %lf us, o = %lf us, g = %lf us, G = %lf ns a byte.", &latency,
                        &overhead, &gap, &byte),
            4);
  EXPECT_DOUBLE_EQ(model.far.latency, 1000 * latency);
  EXPECT_DOUBLE_EQ(model.far.gap, 1000 * gap);
  EXPECT_DOUBLE_EQ(model.far.send.at(65536), 1000 * overhead);
  EXPECT_DOUBLE_EQ(model.far.receive.at(65536), 1000 * overhead);
  EXPECT_NEAR(model.far.wire.at(1001), 1000 * byte, 1e-6);
}

TEST(MachineFile, OfPublishedMachinesNameTheirSource) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE_DIR "/harness/simulate/machines")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const auto machine = machine_from_toml(text);
    ASSERT_TRUE(machine.is_ok()) << machine.status().message();
    EXPECT_THAT(text, HasSubstr("\n# Source: "));
    EXPECT_TRUE(machine.value().has_far || machine.value().ranks_per_cache > 0);
    expect_parameters(text, machine.value().model);
    names.insert(machine.value().name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("AWS, 100 Gb/s", "Alps", "Azure, 200 Gb/s", "DEEP-EST", "EPYC 7R13",
                                                   "LogGOPSim's defaults", "Piz Daint", "griffon"));
}

TEST(MachineFile, HasNearOrFarOrBoth) {
  const Machine machine = machine_from_toml(file()).value();
  EXPECT_FALSE(machine.has_near);
  EXPECT_TRUE(machine.has_far);
  EXPECT_EQ(machine.ranks_per_node, 2);
  EXPECT_EQ(machine.model.far.wire.at(51), 300);
  EXPECT_EQ(machine.model.far.send.at(1e6), 1);
  EXPECT_THAT(refusal_of(file("")), HasSubstr("neither a table [near] nor a table [far]"));
}

TEST(MachineFile, NetworksAndFaultsAreReadBack) {
  for (const std::string& network :
       {std::string("\n[network]\nshape = \"fat-tree\"\nnodes = 8\nleaf = 2\ntaper = 2\nhop = 30\n"
                    "placement = \"strided\"\nseed = 1\n"),
        std::string("\n[network]\nshape = \"torus\"\nsides = [4, 2]\nhop = 5\n"
                    "placement = \"random\"\nseed = 9\n"),
        std::string("\n[network]\nshape = \"rails\"\nnodes = 8\nleaf = 2\ntaper = 1\nhop = 0\n"
                    "placement = \"contiguous\"\nseed = 1\n"
                    "\n[[fault]]\nwhat = \"uplink\"\nleaf = \"B\"\nshare = \"31%\"\n"
                    "\n[[fault]]\nwhat = \"link-dir\"\nnodes = [\"node1\", \"node8\"]\nshare = \"5%\"\n"
                    "\n[[fault]]\nwhat = \"rail\"\nrail = 1\nshare = \"50%\"\n")}) {
    const auto read = machine_from_toml(file() + network);
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    const std::string text = machine_toml(read.value());
    EXPECT_TRUE(text.ends_with(network)) << text;
    EXPECT_EQ(machine_toml(machine_from_toml(text).value()), text);
  }
}

TEST(MachineFile, MistakesOfNetworksAndFaults) {
  const std::string tree = file() + "[network]\nshape = \"fat-tree\"\n";
  EXPECT_THAT(refusal_of(tree), HasSubstr("\"fat-tree\" needs `leaf = ...`"));
  EXPECT_THAT(refusal_of(tree + "links = 3\n"), HasSubstr("unknown key of a fat-tree 'links'"));
  EXPECT_THAT(refusal_of(tree + "leaf = 0\n"), HasSubstr("'leaf' is 0: allowed are 1 to 100000"));
  EXPECT_THAT(refusal_of(tree + "leaf = 2\ntaper = 0\n"), HasSubstr("'taper' is 0: allowed are 0.001 to 1000"));
  EXPECT_THAT(refusal_of(tree + "leaf = 2\nplacement = \"starded\"\n"), HasSubstr("did you mean 'strided'?"));
  EXPECT_THAT(refusal_of(file() + "[network]\nshape = \"tree\"\n"), HasSubstr("unknown shape 'tree'"));
  EXPECT_THAT(refusal_of(file() + "[network]\nshape = \"torus\"\n"), HasSubstr("needs `sides = [8, 8]`"));
  EXPECT_THAT(refusal_of(file() + "[network]\nshape = \"switch\"\nplacement = \"strided\"\n"), HasSubstr("has none"));
  EXPECT_THAT(refusal_of("rails = 3\n" + file()), HasSubstr("'rails' is 3, and a node has 2 ranks: did you mean 2?"));
  const std::string fault = file() + "[[fault]]\nwhat = \"nic\"\n";
  EXPECT_THAT(refusal_of(fault), HasSubstr("\"nic\" needs `node = ...`"));
  EXPECT_THAT(refusal_of(fault + "node = \"node0\"\nshare = \"5%\"\n"), HasSubstr("did you mean 'node1'?"));
  EXPECT_THAT(refusal_of(fault + "node = \"node1\"\nshare = \"100%\"\n"), HasSubstr("allowed are 0% to 99%"));
  EXPECT_THAT(refusal_of(fault + "node = \"node1\"\nshare = 5\n"), HasSubstr("'share' must be a share"));
  EXPECT_THAT(refusal_of(fault + "leaf = \"A\"\n"), HasSubstr("unknown key 'leaf'"));
  EXPECT_THAT(refusal_of(file() + "[[fault]]\nwhat = \"uplnk\"\n"), HasSubstr("did you mean 'uplink'?"));
  EXPECT_THAT(refusal_of(file() + "[[fault]]\nwhat = \"uplink\"\n"), HasSubstr("needs a [network]"));
  EXPECT_THAT(refusal_of(file() + "[[fault]]\nwhat = \"rail\"\nrail = 2\nshare = \"5%\"\n"),
              HasSubstr("allowed are 0 to 1"));
  EXPECT_THAT(refusal_of(tree + "leaf = 2\nnodes = 8\n[[fault]]\nwhat = \"uplink\"\nleaf = \"E\"\nshare = \"5%\"\n"),
              HasSubstr("allowed are 'A' to 'D'"));
}

TEST(MachineFile, MistakesNameTheLineAndWhatIsRight) {
  EXPECT_THAT(refusal_of("nmae = \"m\"\n"), HasSubstr("line 1: unknown key 'nmae': did you mean 'name'?"));
  EXPECT_THAT(refusal_of("ranks_per_node = 0\n"), HasSubstr("line 1: 'ranks_per_node' is 0: allowed are 1 to 100000"));
  EXPECT_THAT(refusal_of("name = 3\n"), HasSubstr("'name' must be a text"));
  EXPECT_THAT(refusal_of("near = 3\n"), HasSubstr("'near' must be a table"));
  EXPECT_THAT(refusal_of(std::string(kFar) + kNode), HasSubstr("it has no `name = ...`"));
  EXPECT_THAT(refusal_of(file(kFar, "")), HasSubstr("it has no table [node]"));
  EXPECT_THAT(refusal_of(file("[far]\nlatency = 10\n")), HasSubstr("line 3: [far] needs `send = ...`"));
  EXPECT_THAT(refusal_of(file("[far]\nlatency = -1\n")), HasSubstr("line 4: 'latency' is -1: allowed are 0 to"));
  EXPECT_THAT(refusal_of(file("[far]\nlatency = nan\n")), HasSubstr("line 4: 'latency' is nan: allowed are 0 to"));
  EXPECT_THAT(refusal_of(file("[far]\nlatncy = 1\n")), HasSubstr("did you mean 'latency'?"));
  EXPECT_THAT(refusal_of(file("[far]\nwire = [[8, 1], [8, 2]]\n")), HasSubstr("sizes rise"));
  EXPECT_THAT(refusal_of(file("[far]\nwire = [[8, 2], [9, 1]]\n")), HasSubstr("would fall below 0"));
  EXPECT_THAT(refusal_of(file("[far]\nwire = [8, 1]\n")), HasSubstr("'wire' must be a number of ns, or a list"));
  EXPECT_THAT(refusal_of(file("[far]\nwire = []\n")), HasSubstr("'wire' must be a number of ns, or a list"));
  EXPECT_THAT(refusal_of(file(std::string(kFar) + "eager = 8\n")), HasSubstr("write both or none"));
}

}  // namespace
}  // namespace tutti::harness::simulate
