// SPDX-License-Identifier: Apache-2.0
// A session on ranks of this process says what a launcher expects to hear.
#include "harness/session/session.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/machine/clock.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"
#include "suites/unit/harness/session/some_cases.h"

namespace tutti::harness::session {
namespace {

using testing::HasSubstr;

struct Message {
  std::string type;
  std::string text;
};

std::vector<Message> messages_of(SessionSpec spec) {
  const BoardMemory memory(spec.ranks);
  std::vector<Message> messages;
  const Status status =
      run_session(spec, {.board = memory.board(), .send = [&](std::string_view type, std::string_view text) {
                           messages.push_back({std::string(type), std::string(text)});
                           return Status();
                         }});
  EXPECT_TRUE(status.is_ok()) << status.message();
  return messages;
}

template <class Task>
SessionSpec spec_of(RanksAs ranks_as, Task task) {
  SessionSpec spec{.task = task, .ranks = 3, .ranks_as = ranks_as, .conditions = {.has_limit = false}};
  for (const char* id : {kReduce, kBroadcast, kBarrier}) {
    Case one = case_of(id);
    one.ranks_as = ranks_as;
    spec.cells.push_back({one});
  }
  return spec;
}
SessionSpec checks(RanksAs ranks_as) { return spec_of(ranks_as, CheckTask()); }
/// With a budget that is used up: the shortest cells there are.
SessionSpec measures(RanksAs ranks_as) { return spec_of(ranks_as, MeasureTask{.end_ns = monotonic_ns()}); }

/// Of threads each measured case has a message of its ranks, which is left aside; of tasks none has. So is what the
/// first call took.
void expect_ok_rows(const SessionSpec& spec, std::vector<Message> messages, std::size_t first) {
  const std::size_t of_ranks = std::erase_if(messages, [](const Message& one) { return one.type == "ranks"; });
  const bool tells_ranks = spec.as<MeasureTask>() != nullptr && spec.ranks_as == RanksAs::threads;
  const std::size_t of_calls = std::erase_if(
      messages, [](const Message& one) { return one.text.starts_with("{\"first_calls_ns\":{\"tutti\":"); });
  EXPECT_EQ(of_calls, spec.as<MeasureTask>() != nullptr ? 1U : 0U);
  EXPECT_EQ(of_ranks, tells_ranks ? spec.cells.size() : 0);
  ASSERT_EQ(messages.size(), first + 2 * spec.cells.size());
  for (std::size_t i = 0; i < spec.cells.size(); ++i) {
    const Message& begin = messages[first + 2 * i];
    const Message& cell = messages[first + 2 * i + 1];
    EXPECT_EQ(begin.type, "begin");
    EXPECT_EQ(begin.text, std::to_string(i));
    EXPECT_EQ(cell.type, "cell");
    const auto row = nlohmann::json::parse(cell.text);
    EXPECT_EQ(row.at("case"), case_id(spec.cells[i].front()));
    EXPECT_EQ(row.at("verdict"), "ok") << cell.text;
    EXPECT_EQ(row.at("wrong"), 0);
    if (spec.as<MeasureTask>() != nullptr) {
      EXPECT_GT(row.at("samples"), 0);
      EXPECT_GT(row.at("time_median"), 0.0);
    } else {
      EXPECT_EQ(row.at("samples"), 0);
    }
  }
}

TEST(Session, ChecksOnThreadsAndAsTasks) {
  for (const RanksAs ranks_as : {RanksAs::threads, RanksAs::tasks}) {
    const SessionSpec spec = checks(ranks_as);
    expect_ok_rows(spec, messages_of(spec), 0);
  }
}

TEST(Session, MeasuresOnThreadsAndAsTasksAndTellsTheFactsFirst) {
  for (const RanksAs ranks_as : {RanksAs::threads, RanksAs::tasks}) {
    const SessionSpec spec = measures(ranks_as);
    const std::vector<Message> messages = messages_of(spec);
    ASSERT_FALSE(messages.empty());
    EXPECT_EQ(messages.front().type, "facts");
    const auto facts = nlohmann::json::parse(messages.front().text);
    EXPECT_EQ(facts.at("floors_ns").size(), 1U);
    EXPECT_GE(facts.at("floors_ns").at("all"), 0.0);
    EXPECT_GE(facts.at("ready_s"), 0.0);
    EXPECT_EQ(facts.at("backends").at("tutti").at("transport"), "local");
    expect_ok_rows(spec, messages, 1);
  }
}

TEST(Session, SamplesStartAfterTheBarrierOfTheSystemWhereThatIsAskedFor) {
  SessionSpec spec = measures(RanksAs::threads);
  spec.conditions.sync = Synchronisation::library;
  const std::vector<Message> messages = messages_of(spec);
  ASSERT_FALSE(messages.empty());
  const auto floors = nlohmann::json::parse(messages.front().text).at("floors_ns");
  ASSERT_EQ(floors.size(), 1U);
  EXPECT_GE(floors.at("tutti"), 0.0) << "of its own barrier";
  expect_ok_rows(spec, messages, 1);
}

TEST(Session, AnAlgorithmThatDoesNotExistIsSkippedWithTheReason) {
  SessionSpec spec = checks(RanksAs::tasks);
  spec.cells.resize(1);
  spec.cells[0][0].algorithm = "rnig";
  const std::vector<Message> messages = messages_of(spec);
  ASSERT_EQ(messages.size(), 2U);
  const auto row = nlohmann::json::parse(messages[1].text);
  EXPECT_EQ(row.at("verdict"), "skipped");
  EXPECT_THAT(row.at("reason").get<std::string>(), HasSubstr("rnig"));
}

TEST(Session, ACaseThatCannotBeBoundIsARowAndTheOthersGoOn) {
  for (const RanksAs ranks_as : {RanksAs::threads, RanksAs::tasks}) {
    for (SessionSpec spec : {checks(ranks_as), measures(ranks_as)}) {
      spec.cells[1][0].root = 7;
      Case beside = spec.cells[1][0];
      beside.root = 1;
      spec.cells[1].push_back(beside);
      std::vector<nlohmann::json> rows;
      for (const Message& message : messages_of(spec)) {
        std::istringstream lines(message.text);
        for (std::string line; message.type == "cell" && std::getline(lines, line);)
          rows.push_back(nlohmann::json::parse(line));
      }
      ASSERT_EQ(rows.size(), 4U);
      EXPECT_EQ(rows[0].at("verdict"), "ok");
      EXPECT_EQ(rows[1].at("verdict"), "ok") << "the case beside it";
      EXPECT_EQ(rows[2].at("verdict"), "error");
      EXPECT_EQ(rows[2].at("reason"), "root 7 is out of range: 0 to 2");
      EXPECT_EQ(rows[2].at("samples"), 0);
      EXPECT_EQ(rows[3].at("verdict"), "ok");
    }
  }
}

}  // namespace
}  // namespace tutti::harness::session
