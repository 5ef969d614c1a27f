// SPDX-License-Identifier: Apache-2.0
// A session's specification survives its way to the ranks, and a session on ranks of this process says what a launcher
// expects to hear.
#include "harness/session/session.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/machine/clock.h"
#include "impl/transports/local/domain.h"
#include "suites/unit/harness/measure/board_memory.h"

namespace tutti::harness::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Case case_of(std::string_view id) {
  auto one = parse_case_id(id);
  EXPECT_TRUE(one.is_ok()) << one.status().message();
  return std::move(one).value();
}

const char* const kReduce = "all_reduce/tutti.ring/local/float/sum/P3.threads/none/64B/out/private/isolated";
const char* const kBroadcast = "broadcast/tutti.direct/local/int32/none/P3.threads/root2/1024B/in/shared/isolated";
const char* const kBarrier = "barrier/tutti.dissemination/local/none/none/P3.threads/none/0B/none/none/isolated";

TEST(SessionSpec, SurvivesItsText) {
  SessionSpec spec;
  spec.mode = SessionSpec::Mode::check;
  spec.ranks = 3;
  spec.ranks_as = RanksAs::threads;
  spec.cells = {{case_of(kReduce), case_of(kBarrier)}, {case_of(kBroadcast)}};
  spec.references = {"openmpi", "mpich"};
  spec.backend_directories = {"/a b", "/c"};
  spec.seed = 0xfedcba9876543210ULL;
  spec.timeout = std::chrono::milliseconds(1234);
  spec.end_ns = 987654321012345;
  spec.cells_after = 5;
  spec.heap_bytes = std::size_t{5} << 32U;
  spec.has_limit = spec.tells_samples = true;
  spec.order_seed = std::uint64_t{1} << 63U;
  spec.bind = Bind::numa;
  spec.sync = Synchronisation::library;
  spec.cache = CacheState::rotate;
  spec.overlap_calls = 7;
  spec.slow_down = SlowDown{.share = 0.1, .bytes = 1 << 20};

  const auto read = session_from_json(to_json(spec));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const SessionSpec& other = read.value();
  EXPECT_EQ(other.mode, spec.mode);
  EXPECT_EQ(other.ranks, spec.ranks);
  EXPECT_EQ(other.ranks_as, spec.ranks_as);
  EXPECT_EQ(other.cells, spec.cells);
  EXPECT_EQ(other.references, spec.references);
  EXPECT_EQ(other.backend_directories, spec.backend_directories);
  EXPECT_EQ(other.seed, spec.seed);
  EXPECT_EQ(other.timeout, spec.timeout);
  EXPECT_EQ(other.end_ns, spec.end_ns);
  EXPECT_EQ(other.cells_after, spec.cells_after);
  EXPECT_EQ(other.heap_bytes, spec.heap_bytes);
  EXPECT_TRUE(other.has_limit && other.tells_samples);
  EXPECT_EQ(other.order_seed, spec.order_seed);
  EXPECT_EQ(session_from_json(to_json(SessionSpec())).value().order_seed, std::nullopt) << "ranks take turns";
  EXPECT_EQ(other.bind, spec.bind);
  EXPECT_EQ(other.sync, spec.sync);
  EXPECT_EQ(other.cache, spec.cache);
  EXPECT_EQ(other.overlap_calls, spec.overlap_calls);
  EXPECT_EQ(other.slow_down, spec.slow_down);
  spec.slow_down->bytes.reset();
  EXPECT_EQ(session_from_json(to_json(spec)).value().slow_down, spec.slow_down) << "of every size";
  EXPECT_EQ(session_from_json(to_json(SessionSpec())).value().slow_down, std::nullopt);
  spec.mode = SessionSpec::Mode::measure;
  EXPECT_EQ(session_from_json(to_json(spec)).value().mode, SessionSpec::Mode::measure);
}

TEST(SessionSpec, NumbersTheCasesOfAllCells) {
  const SessionSpec spec{.cells = {{case_of(kReduce), case_of(kBarrier)}, {}, {case_of(kBroadcast)}}};
  EXPECT_EQ(first_number_of(spec, 0), 0U);
  EXPECT_EQ(first_number_of(spec, 2), 2U);
  EXPECT_EQ(case_numbered(spec, 1), &spec.cells[0][1]);
  EXPECT_EQ(case_numbered(spec, 2), &spec.cells[2][0]);
  EXPECT_EQ(case_numbered(spec, 3), nullptr);
}

TEST(SessionSpec, CarriesTheCountsOfFiles) {
  SessionSpec spec{.ranks = 3, .ranks_as = RanksAs::threads};
  Case one = case_of("all_gather_v/tutti.ring/local/float/none/P3.threads/none/24B.file-01234567/out/private/isolated");
  one.counts.numbers = {1, 0, 5};
  set_bytes(one, 0);
  Case ramp = case_of("all_gather_v/tutti.ring/local/float/none/P3.threads/none/24B.ramp/out/private/isolated");
  spec.cells = {{one}, {ramp}};
  const auto read = session_from_json(to_json(spec));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().cells, spec.cells);
  EXPECT_THAT(read.value().cells[0][0].counts.numbers, ElementsAre(1, 0, 5));
}

TEST(SessionSpec, CarriesPathsThatAreNoText) {
  SessionSpec spec;
  spec.backend_directories = {"/r\xc3\xa9sum\xe9/\xff\x80\xc2", "/\xc2\xbf"};
  const auto read = session_from_json(to_json(spec));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().backend_directories, spec.backend_directories);
}

TEST(SessionSpec, TextThatIsNoneIsRefused) {
  EXPECT_EQ(session_from_json("not json").status().code(), Code::invalid_argument);
  for (const char* text :
       {R"({"timeout_ns": 1e42})", R"({"ranks": 2.0})", R"({"ranks_as": "tasks", "counts": {"file-1": [1, 2.5]}})"}) {
    EXPECT_THAT(session_from_json(text).status().message(), HasSubstr("is no whole number")) << text;
  }
  EXPECT_EQ(session_from_json("[1]").status().code(), Code::invalid_argument);
  EXPECT_THAT(session_from_json(R"({"ranks_as": "thraeds"})").status().message(), HasSubstr("thraeds"));
  EXPECT_THAT(session_from_json(R"({"ranks_as": "threads", "cells": [["all_reduce/x"]]})").status().message(),
              HasSubstr("all_reduce/x"));
}

TEST(SessionSpec, AKeyOfAnotherTypeIsRefused) {
  const auto refused = session_from_json(R"({"ranks_as":"tasks","ranks":"two"})");
  EXPECT_THAT(refused.status().message(), testing::StartsWith("the job's specification: "));
}

TEST(SessionSpec, ProcessesHaveAHeapAndOneProcessHasNone) {
  SessionSpec spec{.ranks = 3, .ranks_as = RanksAs::processes, .heap_bytes = 8192};
  EXPECT_EQ(domain_shape(spec).ranks, 3);
  EXPECT_EQ(domain_shape(spec).heap_bytes, 8192U);
  spec.ranks_as = RanksAs::tasks;
  EXPECT_EQ(domain_shape(spec).heap_bytes, 0U);
}

// ---- running

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

SessionSpec spec_of(RanksAs ranks_as, SessionSpec::Mode mode) {
  SessionSpec spec{.mode = mode, .ranks = 3, .ranks_as = ranks_as};
  for (const char* id : {kReduce, kBroadcast, kBarrier}) {
    Case one = case_of(id);
    one.ranks_as = ranks_as;
    spec.cells.push_back({one});
  }
  spec.end_ns = monotonic_ns();  // the budget is used up: the shortest cells there are
  return spec;
}

void expect_ok_rows(const SessionSpec& spec, const std::vector<Message>& messages, std::size_t first) {
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
    if (spec.mode == SessionSpec::Mode::measure) {
      EXPECT_GT(row.at("samples"), 0);
      EXPECT_GT(row.at("time_median"), 0.0);
    } else {
      EXPECT_EQ(row.at("samples"), 0);
    }
  }
}

TEST(Session, ChecksOnThreadsAndAsTasks) {
  for (const RanksAs ranks_as : {RanksAs::threads, RanksAs::tasks}) {
    const SessionSpec spec = spec_of(ranks_as, SessionSpec::Mode::check);
    expect_ok_rows(spec, messages_of(spec), 0);
  }
}

TEST(Session, MeasuresOnThreadsAndAsTasksAndTellsTheFactsFirst) {
  for (const RanksAs ranks_as : {RanksAs::threads, RanksAs::tasks}) {
    const SessionSpec spec = spec_of(ranks_as, SessionSpec::Mode::measure);
    const std::vector<Message> messages = messages_of(spec);
    ASSERT_FALSE(messages.empty());
    EXPECT_EQ(messages.front().type, "facts");
    const auto facts = nlohmann::json::parse(messages.front().text);
    EXPECT_EQ(facts.at("floors_ns").size(), 1U);
    EXPECT_GE(facts.at("floors_ns").at("all"), 0.0);
    EXPECT_EQ(facts.at("backends").at("tutti").at("transport"), "local");
    expect_ok_rows(spec, messages, 1);
  }
}

TEST(Session, SamplesStartAfterTheBarrierOfTheSystemWhereThatIsAskedFor) {
  SessionSpec spec = spec_of(RanksAs::threads, SessionSpec::Mode::measure);
  spec.sync = Synchronisation::library;
  const std::vector<Message> messages = messages_of(spec);
  ASSERT_FALSE(messages.empty());
  const auto floors = nlohmann::json::parse(messages.front().text).at("floors_ns");
  ASSERT_EQ(floors.size(), 1U);
  EXPECT_GE(floors.at("tutti"), 0.0) << "of its own barrier";
  expect_ok_rows(spec, messages, 1);
}

TEST(Session, AnAlgorithmThatDoesNotExistIsSkippedWithTheReason) {
  SessionSpec spec = spec_of(RanksAs::tasks, SessionSpec::Mode::check);
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
    for (const auto mode : {SessionSpec::Mode::check, SessionSpec::Mode::measure}) {
      SessionSpec spec = spec_of(ranks_as, mode);
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
