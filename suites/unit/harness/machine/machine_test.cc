// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/machine.h"

#include <array>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/row_stamp.h"

namespace tutti::harness::machine {
namespace {

TEST(Machine, ModelFromCpuinfo) {
  EXPECT_EQ(cpu_model_of("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B45\nflags : x\n"), "AMD EPYC 9B45");
  EXPECT_EQ(cpu_model_of("model name : First line\n"), "First line");
  EXPECT_EQ(cpu_model_of("processor : 0\nHardware\t: Board"), "Board");
  EXPECT_EQ(cpu_model_of("processor : 0\nmodel name\t:\nCPU part\t: 0xd40\n"), "0xd40");
  EXPECT_EQ(cpu_model_of(""), "unknown");
}

TEST(Machine, CacheSizesInTheKernelsNotation) {
  EXPECT_EQ(cache_bytes_of("48K"), 49152);
  EXPECT_EQ(cache_bytes_of("32M"), 33554432);
  EXPECT_EQ(cache_bytes_of("512"), 512);
  EXPECT_EQ(cache_bytes_of("12Q"), 0);
  EXPECT_EQ(cache_bytes_of(""), 0);
}

TEST(Machine, ThisOneHasCoresAndMemory) {
  const Machine machine = describe_machine();
  EXPECT_GE(machine.cores_allowed, 1);
  EXPECT_LE(machine.cores_allowed, machine.cores_online);
  EXPECT_GT(machine.memory_bytes, 1 << 20);
  EXPECT_FALSE(machine.cpu_model.empty());
  EXPECT_THAT(machine.kernel, testing::StartsWith("Linux "));
  EXPECT_FALSE(machine.build_type.empty());
  EXPECT_FALSE(machine.commit.empty());
}

TEST(Machine, NamesTheHost) {
  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  EXPECT_EQ(nlohmann::json::parse(machine_to_json(describe_machine()))["hostname"], name.data());
}

TEST(RowStamp, IsTheMachineTheHostAndNow) {
  const Machine machine{.cpu_model = "abacus", .cores_allowed = 2, .hostname = "attic"};
  Row row;
  RowStamp(machine).put_into(row);
  EXPECT_EQ(row.machine, fingerprint_of(machine));
  EXPECT_EQ(row.host, "attic");
  Row of_several;
  RowStamp("0badcafe", "attic").put_into(of_several);
  EXPECT_EQ(of_several.machine + of_several.host, "0badcafeattic");
  EXPECT_THAT(row.timestamp, testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z"));
}

TEST(Machine, AFingerprintIsThatOfTheMachineAndItsAllowedCores) {
  const Machine machine{.cpu_model = "abacus", .cores_allowed = 2, .commit = "abc", .identity = "attic"};
  const std::string mine = fingerprint_of(machine);
  EXPECT_THAT(mine, testing::MatchesRegex("[0-9a-f]{8}"));
  Machine other = machine;
  other.commit = "def";
  EXPECT_EQ(fingerprint_of(other), mine) << "another build on the same machine";
  other.cpu_model = "slide rule";
  EXPECT_NE(fingerprint_of(other), mine);
  other = machine;
  other.cores_allowed = 1;
  EXPECT_NE(fingerprint_of(other), mine);
  other = machine;
  other.identity = "cellar";
  EXPECT_NE(fingerprint_of(other), mine);
  EXPECT_EQ(fingerprint_of(describe_machine()), fingerprint_of(describe_machine()));
  EXPECT_EQ(machine_to_json(machine).find("attic"), std::string::npos);
}

TEST(Machine, AFingerprintOfSeveralIsOfAllInTheirOrder) {
  using List = std::vector<std::string>;
  const auto of = [](const List& machines) { return fingerprint_of(machines); };
  EXPECT_EQ(of({"0badcafe"}), "0badcafe");
  EXPECT_THAT(of({"0badcafe", "12345678"}), testing::MatchesRegex("[0-9a-f]{8}"));
  for (const List& other : {List{"0badcafe"}, List{"0badcafe", "0badcafe"}, List{"12345678", "0badcafe"},
                            List{"0badcafe", "12345678", "12345678"}}) {
    EXPECT_NE(of(other), of({"0badcafe", "12345678"}));
  }
}

TEST(Machine, AsJson) {
  Machine machine{.cpu_model = "abacus", .cores_allowed = 2, .cores_online = 4};
  machine.caches = {{.level = 3, .type = "Unified", .bytes = 1024, .shared_cpus = "0-1"}};
  machine.memory_bytes = 5;
  machine.kernel = "Linux 6";
  machine.compiler = "gcc 12";
  machine.build_type = "Release";
  machine.commit = "abc";
  EXPECT_EQ(machine_to_json(machine),
            R"({"cpu_model":"abacus","cores_allowed":2,"cores_online":4,)"
            R"("caches":[{"level":3,"type":"Unified","bytes":1024,"shared_cpus":"0-1"}],)"
            R"("memory_bytes":5,"kernel":"Linux 6","compiler":"gcc 12","build_type":"Release","commit":"abc"})");
}

}  // namespace
}  // namespace tutti::harness::machine
