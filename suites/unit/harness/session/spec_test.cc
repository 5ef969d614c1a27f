// SPDX-License-Identifier: Apache-2.0
// A session's specification survives its way to the ranks, field by field.
#include "harness/session/spec.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/unit/harness/session/some_cases.h"

namespace tutti::harness::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A value of each type of a field that is not the usual one.
void change(bool& value) { value = !value; }
template <class Number>
requires std::is_integral_v<Number>
void change(Number& value) { value = std::numeric_limits<Number>::max() - 7; }
void change(std::string& value) { value = "a \"b\"\n\xc3\xa9"; }
void change(std::vector<std::string>& value) { value = {"openmpi", "my-mpi_2"}; }
void change(std::vector<std::int64_t>& value) { value = {0, 123456789012}; }
void change(std::chrono::nanoseconds& value) { value = std::chrono::nanoseconds(1234567891); }
void change(RanksAs& value) { value = RanksAs::tasks; }
void change(Conditions& value) { value.sync = Synchronisation::library; }
void change(std::vector<std::vector<Case>>& value) {
  value = {{case_of(kReduce), case_of(kBarrier)}, {}, {case_of(kBroadcast)}};
}
template <class T>
void change(std::optional<T>& value) {
  change(value.emplace());
}

void expect_survives(const SessionSpec& spec, const std::string& word) {
  const auto read = session_from_json(to_json(spec));
  ASSERT_TRUE(read.is_ok()) << word << ": " << read.status().message();
  EXPECT_EQ(read.value(), spec) << word << ": " << to_json(read.value());
}

template <class Task>
void expect_fields_survive() {
  visit_fields(std::type_identity<SessionSpec>(), [](const std::string& word, auto member) {
    SessionSpec spec{.task = Task()};
    change(spec.*member);
    if (word == "transport") spec.transport = "my-transport";
    EXPECT_NE(spec, SessionSpec{.task = Task()}) << word;
    expect_survives(spec, word);
  });
  visit_fields(std::type_identity<Task>(), [](const std::string& word, auto member) {
    Task task;
    change(task.*member);
    EXPECT_NE(task, Task()) << word;
    expect_survives(SessionSpec{.task = task}, word);
  });
}

TEST(SessionSpec, EveryFieldSurvivesItsText) {
  expect_fields_survive<MeasureTask>();
  expect_fields_survive<CheckTask>();
  expect_fields_survive<SoakTask>();
  expect_fields_survive<FaultsTask>();
  expect_fields_survive<TrainTask>();
  expect_survives(SessionSpec(), "as usual");
}

TEST(SessionSpec, EveryConditionSurvivesItsText) {
  for (const Condition& condition : conditions()) {
    std::vector<std::string> texts{std::string(condition.example)};
    if (condition.names != nullptr) texts = condition.names();
    if (condition.option == "--skew") texts = {"50us", "1.5us", "0.001us", "1h"};
    for (const std::string& text : texts) {
      SessionSpec spec;
      const Status read = condition.read(spec.conditions, text);
      if (read.code() == Code::unavailable) continue;  // this machine cannot
      ASSERT_TRUE(read.is_ok()) << condition.option << ": " << read.message();
      EXPECT_EQ(spec.conditions == Conditions(), text == condition.usual) << condition.option << " " << text;
      expect_survives(spec, std::string(condition.option) + " " + text);
    }
  }
}

TEST(SessionSpec, WordsThatNothingHasAreRefused) {
  const auto message = [](const char* text) { return std::string(session_from_json(text).status().message()); };
  EXPECT_THAT(message(R"({"task": "mesure"})"), HasSubstr("there is no task 'mesure'"));
  EXPECT_THAT(message(R"({"ranks": 2})"), HasSubstr("there is no task ''"));
  EXPECT_THAT(message(R"({"task": "check", "ranks": 3000000000})"), HasSubstr("'ranks' is out of range"));
  EXPECT_THAT(message(R"({"task": "check", "seed": -1})"), HasSubstr("'seed' is out of range"));
  EXPECT_THAT(message(R"({"task": "check", "ranks": true})"), HasSubstr("'ranks' is no whole number"));
  EXPECT_THAT(message(R"({"task": "soak", "operation": 3})"), HasSubstr("nothing is called 'operation'"));
  EXPECT_THAT(message(R"({"task": "check", "operations": 3})"), HasSubstr("nothing is called 'operations'"));
  EXPECT_THAT(message(R"({"task": "check", "conditions": {"--cash": "hot"}})"), HasSubstr("no condition '--cash'"));
  EXPECT_THAT(message(R"({"task": "check", "conditions": {"--cache": "warm"}})"), HasSubstr("'warm'"));
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

TEST(SessionSpec, FoldersOfSharedObjectsAreThoseOfTheOwnProcess) {
  SessionSpec spec;
  spec.backend_directories = spec.transport_directories = {"/of/another/process"};
  EXPECT_THAT(to_json(spec), Not(HasSubstr("/of/another/process")));
  for (const char* word : {"backend_directories", "transport_directories"}) {
    const std::string text = fmt::format(R"({{"task": "check", "{}": ["/of/another/process"]}})", word);
    EXPECT_THAT(session_in_payload(text).status().message(), HasSubstr(fmt::format("nothing is called '{}'", word)));
  }
  ::setenv("TUTTI_BACKENDS", "/one:/two", 1);
  ::setenv("TUTTI_TRANSPORTS", "/three", 1);
  const auto own = session_in_payload(to_json(spec));
  ::unsetenv("TUTTI_BACKENDS");
  ::unsetenv("TUTTI_TRANSPORTS");
  ASSERT_TRUE(own.is_ok()) << own.status().message();
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  EXPECT_THAT(own.value().backend_directories, ElementsAre("/one", "/two", program));
  EXPECT_THAT(own.value().transport_directories, ElementsAre("/three", program));
}

TEST(SessionSpec, NamesOfSharedObjectsAreNoPaths) {
  for (const char* text : {R"({"task": "check", "transport": "/tmp/evil"})", R"({"task": "check", "transport": ".."})",
                           R"({"task": "check", "references": ["mpich", "../evil"]})",
                           R"({"task": "check", "on_gpus": [""]})", R"({"task": "check", "twins": ["a/b:2"]})"}) {
    EXPECT_THAT(session_from_json(text).status().message(), HasSubstr("is no name of a transport or backend")) << text;
  }
  EXPECT_TRUE(session_from_json(R"({"task": "check", "references": ["my-mpi_2"], "twins": ["my-mpi_2:2"]})").is_ok());
}

TEST(SessionSpec, TextThatIsNoneIsRefused) {
  EXPECT_EQ(session_from_json("not json").status().code(), Code::invalid_argument);
  for (const char* text :
       {R"({"timeout_ns": 1e42})", R"({"ranks": 2.0})", R"({"cells": {"ids": [], "counts": {"file-1": [1, 2.5]}}})"}) {
    EXPECT_THAT(session_from_json(text).status().message(), HasSubstr("is no whole number")) << text;
  }
  EXPECT_EQ(session_from_json("[1]").status().code(), Code::invalid_argument);
  EXPECT_THAT(session_from_json(R"({"ranks_as": "thraeds"})").status().message(), HasSubstr("thraeds"));
  EXPECT_THAT(session_from_json(R"({"ranks_as": "threads", "cells": {"ids": [["all_reduce/x"]]}})").status().message(),
              HasSubstr("all_reduce/x"));
}

TEST(SessionSpec, AKeyOfAnotherTypeIsRefused) {
  const auto refused = session_from_json(R"({"ranks_as":"tasks","ranks":"two"})");
  EXPECT_THAT(refused.status().message(), testing::StartsWith("the job's specification: "));
}

TEST(SessionSpec, ProcessesHaveAHeapAndOneProcessHasNone) {
  SessionSpec spec{.ranks = 3, .ranks_as = RanksAs::processes, .heap_bytes = 8192};
  EXPECT_EQ(topology_of(spec).value().domain_shape(spec.heap_bytes).ranks, 3);
  EXPECT_EQ(topology_of(spec).value().domain_shape(spec.heap_bytes).heap_bytes, 8192U);
  spec.ranks_as = RanksAs::tasks;
  EXPECT_EQ(topology_of(spec).value().domain_shape(spec.heap_bytes).heap_bytes, 0U);
}

}  // namespace
}  // namespace tutti::harness::session
