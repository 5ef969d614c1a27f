// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/journal.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/accept/pretend.h"

namespace tutti::harness::accept {
namespace {

using ::testing::HasSubstr;

const JournalHead kHead{.build = "b", .nodes = {"node1", "node2", "node3", "node4"}, .plan = "p"};
constexpr double kMargin = 0.05;
const std::vector<Test> kTests{{.measure = Measure::bandwidth, .bytes = 8}, {.measure = Measure::back, .bytes = 8}};

/// Three plays of a cluster of four, with a journal.
class Journals : public ::testing::Test {
 protected:
  static PretendedCrew crew() { return PretendedCrew({.nodes = 4, .leaf_size = 4, .noise = {}, .faults = {}}); }
  std::string text_;
  const JournalCrew::Write write_ = [this](std::string_view line) { text_ += line; };

  static std::vector<double> play(JournalCrew& crew) {
    std::vector<double> speeds;
    for (int i = 0; i < 3; ++i) {
      for (const auto& of_group : crew.play({{0, 1}, {2, 3}}, kTests)) {
        for (const Outcome& outcome : of_group) speeds.push_back(outcome.log_speed);
      }
    }
    return speeds;
  }
};

TEST_F(Journals, GoOnFromAnyLineWithTheSameNumbers) {
  PretendedCrew whole_crew = crew();
  JournalCrew whole(whole_crew, write_, kMargin);
  whole.begin(kHead);
  const std::vector<double> speeds = play(whole);
  const std::string journal = text_;
  for (std::size_t cut = journal.find('\n') + 1; cut <= journal.size(); cut += 37) {
    text_.clear();
    PretendedCrew rest = crew();
    JournalCrew resumed(rest, write_, kMargin);
    const auto bytes = resumed.resume(std::string_view(journal).substr(0, cut), kHead);
    ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
    EXPECT_EQ(bytes.value(), journal.rfind('\n', cut - 1) + 1);
    const std::vector<double> again = play(resumed);
    for (std::size_t i = 0; i < resumed.taken_over(); ++i) EXPECT_EQ(again[i], speeds[i]) << "cut at " << cut;
    EXPECT_EQ(resumed.taken_over() % 4, 0U) << "a play is taken over as a whole";
    // What goes on is a journal too, although a play that was cut off stands there twice.
    const std::string joined = journal.substr(0, bytes.value()) + text_;
    PretendedCrew nobody = crew();
    JournalCrew third(nobody, write_, kMargin);
    ASSERT_TRUE(third.resume(joined, kHead).is_ok());
    EXPECT_EQ(play(third), again);
    EXPECT_EQ(third.taken_over(), 12U);
  }
}

TEST_F(Journals, HaveALineForEachTest) {
  PretendedCrew played = crew();
  JournalCrew journal(played, write_, kMargin);
  journal.begin(kHead);
  journal.set_round("pairs", 7);
  static_cast<void>(journal.play({{0, 1}}, kTests));
  EXPECT_THAT(text_,
              HasSubstr(R"({"stage":"pairs","round":7,"play":0,"group":["node1","node2"],"cell":"bandwidth-back/8B",)"
                        R"("attempt":1,"ending":"measured","verdict":"PASS","log_speed":)"));
}

TEST_F(Journals, KeepRailsApart) {
  const auto two_rails = [] { return PretendedCrew({.nodes = 4, .noise = {}, .faults = {}, .rails = {"ib0", "ib1"}}); };
  PretendedCrew played = two_rails();
  JournalCrew journal(played, write_, kMargin);
  journal.begin(kHead);
  static_cast<void>(journal.play({{0, 1}}, {{.measure = Measure::bandwidth, .bytes = 8, .rail = 1}}));
  EXPECT_THAT(text_, HasSubstr(R"("cell":"bandwidth/8B","rail":"ib1",)"));
  const std::string written = text_;
  for (const int rail : {0, 1, kNoRail}) {
    PretendedCrew rest = two_rails();
    JournalCrew resumed(rest, write_, kMargin);
    ASSERT_TRUE(resumed.resume(written, kHead).is_ok());
    static_cast<void>(resumed.play({{0, 1}}, {{.measure = Measure::bandwidth, .bytes = 8, .rail = rail}}));
    EXPECT_EQ(resumed.taken_over(), rail == 1 ? 1U : 0U);
  }
}

TEST_F(Journals, RefuseWhatIsNotOfThisRun) {
  const auto refusal = [&](const std::string& text, const JournalHead& head) {
    PretendedCrew played = crew();
    JournalCrew journal(played, write_, kMargin);
    const auto bytes = journal.resume(text, head);
    return bytes.is_ok() ? std::string() : std::string(bytes.status().message());
  };
  PretendedCrew played = crew();
  JournalCrew(played, write_, kMargin).begin(kHead);
  EXPECT_EQ(refusal(text_, kHead), "");
  JournalHead other = kHead;
  other.plan = "q";
  EXPECT_EQ(refusal(text_, other), "line 1: its plan is 'p', now it is 'q'");
  other = kHead;
  other.nodes.pop_back();
  EXPECT_EQ(refusal(text_, other), "line 1: it has other nodes");
  other = kHead;
  other.build = "c";
  EXPECT_EQ(refusal(text_, other), "line 1: it is of build 'b', this is 'c'");
  EXPECT_EQ(refusal("", kHead), "it has no whole line");
  EXPECT_THAT(refusal("{}\n", kHead), HasSubstr("line 1: "));
  EXPECT_THAT(refusal(text_ + "{\"ending\":\"measured\",\"log_speed\":\"x\"}\n", kHead), HasSubstr("line 2: "));
  EXPECT_THAT(refusal(text_ + "[[[[\n", kHead), HasSubstr("line 2: "));
}

}  // namespace
}  // namespace tutti::harness::accept
