// SPDX-License-Identifier: Apache-2.0
// Hosts beside each other: what of them is told, and how grave it is.
#include "harness/doctor/hosts_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti::harness::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Visit visit_to(const std::string& host, std::vector<Fact> facts) {
  return {.host = host,
          .failure = {},
          .look = {.hostname = host,
                   .build = "tutti 1",
                   .machine = "machine of " + host,
                   .address = "192.0.2.1",
                   .listens = "192.0.2.1:4000",
                   .facts = std::move(facts),
                   .condition = "{}",
                   .findings = {}},
          .reached = {},
          .clock = ClockOffset{},
          .login_seconds = 0.4};
}

std::vector<std::string> told(const std::vector<Visit>& visits) {
  std::vector<std::string> all;
  for (const Symptom& one : findings_of(visits)) {
    all.push_back(fmt::format("{} {}: {}", to_string(one.severity), one.name, one.what));
    EXPECT_FALSE(one.why.empty() || one.advice.empty()) << one.name;
  }
  return all;
}

TEST(HostsDiagnosis, SaysNothingOfHostsAlike) {
  const std::vector<Fact> facts{{"build", "1"}, {"governor", ""}};
  EXPECT_THAT(told({visit_to("a", facts), visit_to("b", facts)}), IsEmpty());
}

TEST(HostsDiagnosis, TellsASlowLoginWithItsSeconds) {
  std::vector<Visit> visits{visit_to("a", {}), visit_to("b", {})};
  visits.back().login_seconds = 15.24;
  EXPECT_THAT(told(visits), ElementsAre("note slow_login: it took 15.2 s until something ran on b"));
}

TEST(HostsDiagnosis, NamesHostsThatDifferFromMost) {
  const auto differing = [](const std::vector<Visit>& visits, std::string_view name) {
    std::vector<std::string> all;
    for (const Difference& one : differing_hosts(visits, name)) all.push_back(one.host + ": " + one.what);
    return all;
  };
  std::vector<Visit> visits{visit_to("a", {{"memory", "64 GiB"}, {"link speed in Mbit/s", "100"}}),
                            visit_to("b", {{"memory", "32 GiB"}, {"link speed in Mbit/s", "100"}}),
                            visit_to("c", {{"memory", "64 GiB"}})};
  EXPECT_THAT(differing(visits, "memory"), ElementsAre("b: its memory is 32 GiB: most hosts have 64 GiB"));
  EXPECT_THAT(differing(visits, "link_speed"),
              ElementsAre("c: its link speed in Mbit/s is unknown: most hosts have 100"));
  EXPECT_THAT(differing(visits, "kernel"), IsEmpty());
  visits.pop_back();
  EXPECT_THAT(differing(visits, "memory"), IsEmpty()) << "one of two is not most";
  EXPECT_THAT(names_of_differences(), testing::IsSupersetOf({"memory", "link_speed", "mtu"}));
}

TEST(HostsDiagnosis, TellsWhatDiffersTheMostFrequentValueFirst) {
  const std::vector<Visit> visits{
      visit_to("a", {{"kernel", "6.2"}, {"build", "1"}, {"reference mpich", "MPICH 4.0.2"}}),
      visit_to("b", {{"kernel", "6.1"}, {"build", "1"}, {"reference mpich", "MPICH 4.0.2"}}),
      visit_to("c", {{"kernel", "6.1"}, {"build", "2"}}),
  };
  EXPECT_THAT(told(visits), ElementsAre("blocks build: build differs: 1 on a and b; 2 on c",
                                        "spoils reference_mpich: reference mpich differs: MPICH 4.0.2 on a and b; "
                                        "unknown on c",
                                        "note kernel: kernel differs: 6.1 on b and c; 6.2 on a"));
}

TEST(HostsDiagnosis, NamesSomeOfManyHosts) {
  std::vector<Visit> visits;
  for (int i = 0; i < 9; ++i)
    visits.push_back(visit_to(fmt::format("n{}", i), {{"governor", i == 0 ? "powersave" : "performance"}}));
  EXPECT_THAT(told(visits), ElementsAre("spoils governor: governor differs: performance on n1, n2, n3, n4, n5 and 3 "
                                        "more; powersave on n0"));
}

TEST(HostsDiagnosis, TellsOfClocksThatAreApartByMoreThanIsKnown) {
  std::vector<Visit> visits{visit_to("a", {}), visit_to("b", {}), visit_to("c", {})};
  visits[1].clock = ClockOffset{.ahead_ns = -2e9, .bound_ns = 1e5};
  visits[2].clock = ClockOffset{.ahead_ns = 50e6, .bound_ns = 45e6};
  EXPECT_THAT(told(visits),
              ElementsAre("note clocks: the time of day of b is 2000.000 ms behind that of a (known to 0.100 ms)"));
}

TEST(HostsDiagnosis, SaysOnceWhatSeveralHostsHaveFoundAlike) {
  std::vector<Visit> visits{visit_to("a", {}), visit_to("b", {}), visit_to("c", {})};
  const Symptom turbo{"turbo", Severity::note, "turbo is on", "why", "advice"};
  for (Visit& visit : visits) visit.look.findings = {turbo};
  visits[1].look.findings.push_back({"quota", Severity::spoils, "a quota", "why", "advice"});
  EXPECT_THAT(told(visits), ElementsAre("spoils quota: on b: a quota", "note turbo: on all hosts: turbo is on"));
}

TEST(HostsDiagnosis, TellsOfAHostThatWasNotExamined) {
  std::vector<Visit> visits{visit_to("a", {}), visit_to("b", {})};
  visits[1].failure = error(Code::unavailable, "`ssh b` exited with code 255");
  EXPECT_THAT(told(visits), ElementsAre("blocks unreachable: host b cannot be examined: `ssh b` exited with code 255"));
  const auto all = nlohmann::json::parse(diagnosis_json(visits, findings_of(visits)));
  EXPECT_EQ(all["hosts"][1]["failure"], "`ssh b` exited with code 255");
  EXPECT_TRUE(all["hosts"][0]["failure"].is_null());
  EXPECT_THAT(diagnosis_text(visits, {}), HasSubstr("  b     not examined\n"));
}

TEST(HostsDiagnosis, ALookComesBackFromItsText) {
  HostLook look = visit_to("a", {{"kernel", "6.1"}}).look;
  look.findings = {{"quota", Severity::spoils, "what", "why", "advice"}};
  const auto back = look_from_json(to_json(look));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(to_json(back.value()), to_json(look));
  EXPECT_EQ(back.value().findings[0].severity, Severity::spoils);
  EXPECT_FALSE(look_from_json("{}").is_ok());
  EXPECT_FALSE(look_from_json(R"({"facts": 3})").is_ok());
}

}  // namespace
}  // namespace tutti::harness::doctor
