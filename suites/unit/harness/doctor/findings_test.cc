// SPDX-License-Identifier: Apache-2.0
// Machines as they are met, and what is said of them.
#include "harness/doctor/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/doctor/diagnosis.h"
#include "suites/unit/harness/machine/machines.h"

namespace tutti::harness::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of(const MachineCondition& condition) {
  std::vector<std::string> names;
  for (const Symptom& finding : findings_of(condition)) {
    names.push_back(fmt::format("{} {}", to_string(finding.severity), finding.name));
    EXPECT_FALSE(finding.what.empty() || finding.why.empty() || finding.advice.empty()) << finding.name;
  }
  return names;
}

class Doctor : public testing::Test {
 protected:
  MachineCondition read(Probes probes = good_probes()) { return read_condition(root_.tree(), std::move(probes)); }
  void server(const Cores& cores, std::string_view flags = "fpu sse") {
    write_machine(root_, cores, "Example CPU 9000", flags);
    root_.write("usr/bin/mpirun", "");
  }

  FakeRoot root_;
};

TEST_F(Doctor, FindsNothingOnAQuietServer) {
  server({.sockets = 1, .per_socket = 8});
  root_.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
  const MachineCondition condition = read();
  EXPECT_EQ(condition.cpu_model, "Example CPU 9000");
  EXPECT_EQ(condition.physical_cores, 8);
  EXPECT_EQ(condition.sockets, 1);
  EXPECT_EQ(condition.memory_bytes, std::int64_t{64} << 30);
  EXPECT_EQ(condition.huge_pages, "madvise");
  ASSERT_EQ(condition.caches.size(), 1U);  // not the instructions'
  EXPECT_EQ(condition.caches[0].bytes, 48 << 10);
  EXPECT_EQ(condition.mpirun, "/usr/bin/mpirun");
  EXPECT_THAT(names_of(condition), IsEmpty());
  EXPECT_THAT(diagnosis_text(condition, {}), HasSubstr("Nothing was found that would spoil a measurement."));
}

TEST_F(Doctor, WithoutSysKnowsTheCoresThatARunAsksFor) {
  root_.write("proc/self/status", "Name:\ttutti\nCpus_allowed_list:\t0-1\n");
  const MachineCondition condition = read();
  EXPECT_EQ(condition.allowed, (std::vector{0, 1}));
  EXPECT_EQ(condition.online, (std::vector{0, 1}));
  for (const Symptom& finding : findings_of(condition)) EXPECT_NE(finding.severity, Severity::blocks) << finding.what;
}

TEST_F(Doctor, FindsTheQuotaOfAContainer) {
  server({.sockets = 1, .per_socket = 4}, "fpu hypervisor sse");
  root_.write("proc/self/cgroup", "0::/system.slice/docker-1.scope");
  root_.write("sys/fs/cgroup/system.slice/docker-1.scope/cpu.max", "150000 100000");
  root_.write("sys/fs/cgroup/system.slice/cpu.max", "300000 100000");
  root_.write("sys/fs/cgroup/system.slice/docker-1.scope/memory.max", "1073741824");
  root_.write("sys/fs/cgroup/system.slice/memory.max", "536870912");  // the parent's holds too
  root_.write("sys/fs/cgroup/memory.max", "max");
  root_.write(".dockerenv", "");
  root_.write("sys/class/dmi/id/sys_vendor", "QEMU");
  Probes probes = good_probes();
  probes.shm_bytes = 64 << 20;
  const MachineCondition condition = read(probes);
  EXPECT_EQ(condition.quota_cores, 1.5);
  EXPECT_EQ(condition.memory_limit, 512 << 20);
  EXPECT_TRUE(condition.is_container);
  EXPECT_THAT(names_of(condition), ElementsAre("spoils quota", "spoils dev_shm", "note virtual", "note little_memory"));
  const std::vector<Symptom> findings = findings_of(condition);
  EXPECT_EQ(findings[0].what, "the cgroup grants the time of 1.50 cores, and 4 may be used");
  EXPECT_THAT(findings[0].advice, HasSubstr("at most 1 rank, "));
  EXPECT_THAT(diagnosis_text(condition, findings), HasSubstr("virtual machine (QEMU/KVM), in a container"));
}

TEST_F(Doctor, ReadsTheLimitsOfTheFirstCgroupVersion) {
  server({.sockets = 1, .per_socket = 4});
  root_.write("proc/self/cgroup", "4:memory:/box\n2:cpu,cpuacct:/box\n0::/");
  root_.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000");
  root_.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  root_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  root_.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712");
  const MachineCondition condition = read();
  EXPECT_EQ(condition.quota_cores, 2.0);
  EXPECT_EQ(condition.memory_limit, std::nullopt);
  EXPECT_THAT(names_of(condition), ElementsAre("spoils quota"));
}

TEST_F(Doctor, TellsTheNodesAndThreadsOfALargeServer) {
  server({.sockets = 2, .per_socket = 4, .threads = 2});
  root_.write("sys/devices/system/node/node2/cpulist", "");  // memory alone
  const MachineCondition condition = read();
  EXPECT_EQ(condition.sockets, 2);
  EXPECT_EQ(condition.physical_cores, 8);
  EXPECT_THAT(condition.numa,
              ElementsAre(ElementsAre(0, 1, 2, 3, 8, 9, 10, 11), ElementsAre(4, 5, 6, 7, 12, 13, 14, 15)));
  EXPECT_THAT(names_of(condition), ElementsAre("note threads", "note numa"));
  EXPECT_THAT(findings_of(condition)[0].what, HasSubstr("0+8 1+9 2+10 3+11 ..."));
  EXPECT_THAT(diagnosis_text(condition, findings_of(condition)), HasSubstr("16 online (0-15), 16 allowed (0-15)"));
}

TEST_F(Doctor, LooksAtAllowedCoresOnly) {
  server({.sockets = 2, .per_socket = 4, .threads = 2});
  root_.write("proc/self/status", "Cpus_allowed_list:\t0-3");
  const MachineCondition condition = read();
  EXPECT_THAT(condition.allowed, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(names_of(condition), ElementsAre("note affinity"));
}

TEST_F(Doctor, FindsTheClockOfALaptop) {
  server({.sockets = 1, .per_socket = 2, .threads = 2});
  root_.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  root_.write("sys/devices/system/cpu/intel_pstate/no_turbo", "0");
  root_.write("proc/loadavg", "2.50 1 1 1/1 1");
  root_.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  root_.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_THAT(names_of(read()), ElementsAre("spoils load", "spoils clock", "spoils governor", "note turbo",
                                            "note threads", "note huge_pages"));
}

TEST_F(Doctor, CountsWhatTheHypervisorGaveToOthers) {
  server({}, "hypervisor");
  root_.write("proc/stat", "cpu  1000 0 1000 7000 0 0 0 1000 500 0");
  const MachineCondition condition = read();
  EXPECT_DOUBLE_EQ(condition.steal_fraction, 0.1);
  EXPECT_THAT(names_of(condition), ElementsAre("spoils steal", "note virtual"));
}

TEST_F(Doctor, TellsWhatReferencesLack) {
  server({});
  root_.write("proc/sys/kernel/yama/ptrace_scope", "1");
  Probes probes = good_probes();
  probes.programs_path = {"relative", "", "/opt/none"};
  EXPECT_THAT(names_of(read(probes)), ElementsAre("note ptrace"));
  probes.backends = {};
  EXPECT_THAT(names_of(read(probes)), ElementsAre("note ptrace", "note references"));
  probes.unusable = {{.name = "mpich", .why = "no mpirun starts it"}};
  EXPECT_THAT(names_of(read(probes)), ElementsAre("note ptrace", "note backend")) << "found";
  root_.write("proc/self/status", "CapEff:\t0000000000080000\nCpus_allowed_list:\t0-1");
  EXPECT_THAT(names_of(read(good_probes())), IsEmpty());
}

TEST_F(Doctor, SaysWhatBlocksFirst) {
  server({});
  Probes probes = good_probes();
  probes.memory_refusal = "Function not implemented";
  probes.socket_refusal = "Operation not permitted";
  root_.write("proc/loadavg", "9 9 9 1/1 1");
  EXPECT_THAT(names_of(read(probes)), ElementsAre("blocks memory", "blocks sockets", "spoils load"));
}

TEST_F(Doctor, KnowsLittleOfAnEmptyTree) {
  const MachineCondition condition = read({});
  EXPECT_THAT(names_of(condition), ElementsAre("blocks cores", "note references"));
  EXPECT_THAT(diagnosis_text(condition, findings_of(condition)), HasSubstr("clock source unknown"));
}

TEST_F(Doctor, SaysTheSameInJson) {
  server({});
  root_.write("dev/nvidia0", "");
  root_.write("dev/nvidiactl", "");
  root_.write("proc/loadavg", "9 9 9 1/1 1");
  const MachineCondition condition = read();
  const auto json = nlohmann::json::parse(diagnosis_json(condition, findings_of(condition)));
  EXPECT_EQ(json["machine"]["cpu_model"], "Example CPU 9000");
  EXPECT_EQ(json["machine"]["gpus"], nlohmann::json({"nvidia0"}));
  EXPECT_TRUE(json["machine"]["quota_cores"].is_null());
  EXPECT_EQ(json["machine"]["cores_allowed"], nlohmann::json({0, 1}));
  ASSERT_EQ(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["name"], "load");
  EXPECT_EQ(json["findings"][0]["severity"], "spoils");
}

TEST(CpuList, IsTheKernels) {
  EXPECT_THAT(parse_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x"), IsEmpty());
}

}  // namespace
}  // namespace tutti::harness::doctor
