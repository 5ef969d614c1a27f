// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/accept/table.h"
#include "suites/unit/harness/accept/reports.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AcceptExports, PrometheusHasAVerdictForEachNode) {
  const std::string text = accept_prometheus(with_a_slow_node());
  EXPECT_THAT(text, HasSubstr("tutti_accept_verdict{node=\"node1\",stage=\"\",class=\"\",verdict=\"PASS\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("tutti_accept_verdict{node=\"node2\",stage=\"pairs\",class=\"nic-out\",verdict=\"FAIL\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tutti_accept_of_fleet_ratio{node=\"node1\",direction=\"out\"} 1.002"));
}

TEST(AcceptExports, JsonHasTheSentenceAndNumbers) {
  const auto document = nlohmann::json::parse(accept_json(with_a_slow_node()));
  EXPECT_EQ(document.at("verdict"), "FAIL");
  EXPECT_EQ(document.at("findings").at(0).at("class"), "nic-out");
  EXPECT_NEAR(document.at("findings").at(0).at("of_fleet").get<double>(), -0.1, 1e-12);
  EXPECT_EQ(document.at("nodes").at(3).at("verdict"), "ERROR");
  EXPECT_NEAR(document.at("fleet").at("near_bytes_per_second").get<double>(), 11.6e9, 1);
  EXPECT_TRUE(document.at("init").is_null());
}

TEST(AcceptExports, TimesOfInitNameTheSlowestGroup) {
  AcceptReport report = healthy(6);
  EXPECT_THAT(accept_table(report), Not(HasSubstr("# init")));
  report.init = {.groups = 3, .median_s = 0.21, .most_s = 0.9, .slowest = {2, 5}};
  EXPECT_EQ(nlohmann::json::parse(accept_json(report)).at("init"),
            nlohmann::json::parse(R"({"groups":3,"median_s":0.21,"most_s":0.9,"slowest":["node3","node6"]})"));
  const std::string line =
      "# init, from the start of the processes to their first collective: 0.21 s (median of 3 groups), ";
  EXPECT_THAT(accept_table(report), HasSubstr(line + "0.90 s at most: node3, node6\n"));
  report.init.slowest = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(accept_table(report), HasSubstr("0.90 s at most: node1, node2, node3, node4 and 2 more\n"));
}

TEST(AcceptTable, HasALineForEachNodeOfAFew) {
  const std::string text = accept_table(with_a_slow_node());
  EXPECT_THAT(text, ::testing::StartsWith("# tutti accept: FAIL. node2 sends 10.0 %"));
  EXPECT_THAT(text, HasSubstr("\n  node1  PASS              -   +0.2   -0.1        -  node2   -1.0   A\n"));
  EXPECT_THAT(text, HasSubstr("\n  node2  FAIL nic-out "));
  EXPECT_THAT(text, HasSubstr("\n# fleet: 11.6 GB/s within a leaf, 10.5 GB/s between leaves, 2.3 us; spread of nodes "
                              "0.8 %, of repeats 1.9 %. Valid until "));
}

TEST(AcceptTable, FoldsManyNodes) {
  AcceptReport report = healthy(64);
  EXPECT_THAT(accept_table(report), Not(HasSubstr("node17")));
  add(report, {.what = Class::nic_out, .first = 16, .judgement = slow(), .tests = 24, .visits = 2});
  add(report, {.what = Class::link, .first = 21, .second = 39, .judgement = slow(), .tests = 32, .visits = 2});
  const std::string text = accept_table(report);
  EXPECT_THAT(text,
              HasSubstr("\n  node17           FAIL nic-out          -10.0 %  -11.0 .. -9.0           24      2\n"));
  EXPECT_THAT(text, HasSubstr("\n  node22 - node40  FAIL link "));
  EXPECT_THAT(text, HasSubstr("\n  A           32      31       +0.2      -0.1\n"));
}

}  // namespace
}  // namespace tutti::harness::accept
