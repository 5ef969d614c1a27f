// SPDX-License-Identifier: Apache-2.0
#include "harness/report/exports.h"

#include <gmock/gmock.h>

namespace tutti::harness::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Row row_on(const std::string& hosts, int ranks) {
  Case one;
  one.collective = Collective::barrier;
  one.ranks = ranks;
  one.algorithm = "dissemination";
  Row row = row_of(one);
  row.verdict = Verdict::ok;
  row.time_median = 1;
  if (!hosts.empty()) row.conditions["hosts"] = hosts;
  return row;
}

TEST(Prometheus, CountsTheHostsThatHaveRanks) {
  const auto text_of = [](const Row& row) { return prometheus_of(std::span(&row, 1)); };
  EXPECT_THAT(text_of(row_on("", 4)), HasSubstr("n_nodes=\"1\""));
  EXPECT_THAT(text_of(row_on("a:2,b:2", 4)), HasSubstr("n_nodes=\"2\""));
  EXPECT_THAT(text_of(row_on("a:1,[2001:db8::7]:1,c:1", 2)), HasSubstr("n_nodes=\"2\"")) << "the third has no rank";
}

TEST(Prometheus, BytesThatAreNoUtf8AreWrittenOut) {
  Row row = row_on("", 2);
  row.host = "h\xff";
  const std::string text = prometheus_of(std::span(&row, 1));
  EXPECT_THAT(text, HasSubstr("node=\"h\\\\xff\""));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace tutti::harness::report
