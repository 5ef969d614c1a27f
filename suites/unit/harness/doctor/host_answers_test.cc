// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host_answers.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::harness::doctor {
namespace {

using testing::ElementsAre;

std::vector<std::string> answers_in(std::string_view bytes, std::size_t at_once) {
  AnswerReader reader;
  std::vector<std::string> answers;
  for (std::size_t at = 0; at < bytes.size(); at += at_once) {
    reader.take(bytes.substr(at, at_once));
    while (auto answer = reader.next()) answers.push_back(std::move(*answer));
  }
  return answers;
}

TEST(HostAnswers, AnAnswerIsFoundWithinItsLine) {
  EXPECT_EQ(answer_in("tutti-doctor {\"a\": 1}"), "{\"a\": 1}");
  EXPECT_EQ(answer_in("\x1b]0;title\atutti-doctor 17"), "17");
  EXPECT_EQ(answer_in("tutti-doctor is not found; tutti-doctor {}"), "{}");
  EXPECT_EQ(answer_in("tutti-doctor {\"path\": \"tutti-doctor 1\"}"), "{\"path\": \"tutti-doctor 1\"}");
  EXPECT_EQ(answer_in("tutti-doctor "), std::nullopt);
  EXPECT_EQ(answer_in("tutti-doctor x"), std::nullopt);
  EXPECT_EQ(answer_in("Last login: today"), std::nullopt);
  EXPECT_EQ(answer_in(""), std::nullopt);
}

TEST(HostAnswers, AreTheSameInPiecesOfAnyLength) {
  const std::string text = "Welcome\n$ tutti-doctor {\"x\": 1}\r\nmore\ntutti-doctor 12\ntutti-doctor 13";
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{7}, text.size()}) {
    EXPECT_THAT(answers_in(text, at_once), ElementsAre("{\"x\": 1}\r", "12")) << at_once;
  }
}

TEST(HostAnswers, MuchMayStandBeforeOneAndNotWithoutEnd) {
  AnswerReader reader;
  reader.take(std::string(200'000, 'x') + "tutti-doctor 1\n");
  EXPECT_EQ(reader.next(), "1");
  for (int i = 0; i < 2; ++i) {  // an answer ends the count
    reader.take(std::string(AnswerReader::kMostBytes - 100, '\n') + "tutti-doctor 2\n");
    EXPECT_FALSE(reader.is_flooded());
    EXPECT_EQ(reader.next(), "2");
  }
  for (const char* const noise : {"y", "y\n"}) {
    AnswerReader other;
    for (std::size_t bytes = 0; bytes <= AnswerReader::kMostBytes; bytes += 1000 * std::string(noise).size()) {
      EXPECT_FALSE(other.is_flooded()) << bytes;
      std::string piece;
      for (int i = 0; i < 1000; ++i) piece += noise;
      other.take(piece);
      EXPECT_EQ(other.next(), std::nullopt);
    }
    EXPECT_TRUE(other.is_flooded());
    other.take("tutti-doctor 3\n");
    EXPECT_EQ(other.next(), std::nullopt);
  }
}

std::string text_of_look() {
  return to_json(HostLook{.hostname = "a",
                          .build = "tutti 1",
                          .machine = "m",
                          .address = "192.0.2.1",
                          .listens = "192.0.2.1:4000",
                          .facts = {{"kernel", "6.1"}},
                          .condition = "{}",
                          .findings = {{"steal", Severity::spoils, "what", "why", "advice"}}});
}

TEST(HostAnswers, TheLookIsFoundAmongWhatAProcessPrints) {
  const auto look = look_among("a library greets\ntutti-doctor " + text_of_look() + "\nand says good bye");
  ASSERT_TRUE(look.is_ok()) << look.status().message();
  EXPECT_EQ(look.value().hostname, "a");
  ASSERT_EQ(look.value().facts.size(), 1U);
  EXPECT_EQ(look.value().facts[0].value, "6.1");
  ASSERT_EQ(look.value().findings.size(), 1U);
  EXPECT_EQ(look.value().findings[0].severity, Severity::spoils);
}

TEST(HostAnswers, ALookThatAStrangerHasWrittenIsRefused) {
  const auto why = [](const std::string& printed) { return std::string(look_among(printed).status().message()); };
  EXPECT_EQ(why(""), "its process has printed no answer");
  EXPECT_EQ(why(" \n"), "its process has printed no answer");
  EXPECT_EQ(why("hello\n\x1b[31mno\n"), "its process has printed no answer: \\x1b[31mno");
  EXPECT_EQ(why("tutti-doctor " + text_of_look()).substr(0, 34), "its process has printed no answer:")
      << "its line has no end";
  EXPECT_EQ(why("tutti-doctor 17\n"), "what a host says of itself is not a JSON object");
  EXPECT_EQ(why("tutti-doctor {\"facts\":" + std::string(100'000, '[') + "\n"),
            "what a host says of itself is not a JSON object");
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{R"("kernel")", "7"},
                                                        {R"(["kernel","6.1"])", "\"kernel\""},
                                                        {R"([["kernel","6.1"]])", R"({"kernel":{}})"},
                                                        {R"("hostname":"a")", R"("hostname":null)"},
                                                        {R"("severity":"spoils")", R"("severity":[])"},
                                                        {R"("seconds":0.0)", R"("seconds":"0")"}}) {
    std::string text = text_of_look();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_THAT(why("tutti-doctor " + text + "\n"), testing::StartsWith("what a host says of itself: ")) << text;
  }
}

}  // namespace
}  // namespace tutti::harness::doctor
