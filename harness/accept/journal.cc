// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/journal.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

using Document = nlohmann::ordered_json;

std::string_view measure_name(Measure measure) {
  switch (measure) {
    case Measure::bandwidth:
      return "bandwidth";
    case Measure::back:
      return "bandwidth-back";
    case Measure::latency:
      return "pingpong";
    case Measure::alone:
      return "alone";
    case Measure::ring:
      return "ring";
    case Measure::all_reduce:
      return "all_reduce";
    case Measure::all_to_all:
      return "all_to_all";
    case Measure::soak:
      return "soak";
    case Measure::training:
      return "training";
    case Measure::command:
      return "command";
  }
  return "?";
}

struct EndingName {
  Ending ending;
  std::string_view name;
};
constexpr std::array kEndings{EndingName{Ending::measured, "measured"}, EndingName{Ending::wrong, "wrong"},
                              EndingName{Ending::hung, "hung"}, EndingName{Ending::failed, "failed"},
                              EndingName{Ending::interrupted, "interrupted"}};

std::string_view ending_name(Ending ending) {
  for (const EndingName& row : kEndings) {
    if (row.ending == ending) return row.name;
  }
  return "?";
}

Result<Ending> ending_named(std::string_view name) {
  for (const EndingName& row : kEndings) {
    if (row.name == name && row.ending != Ending::interrupted) return row.ending;
  }
  return error(Code::invalid_argument, "'{}' is no ending of a test", shown(name));
}

/// Returns the key of the value in a line.
const char* unit_of(Measure measure) {
  switch (measure) {
    case Measure::latency:
      return "us";
    case Measure::soak:
      return "operations_per_second";
    case Measure::training:
      return "steps_per_second";
    case Measure::command:
      return "runs_per_second";
    default:
      return "bytes_per_second";
  }
}

/// Of a test by itself: one that is slow once is no more than suspect.
Verdict verdict_of_test(const Outcome& outcome, bool is_slow) {
  if (is_failure(outcome)) return Verdict::fail;
  return is_slow ? Verdict::suspect : Verdict::pass;
}

std::string cell_name(const Test& test) {
  const char* const unit = test.measure == Measure::soak       ? "operations"
                           : test.measure == Measure::training ? "images"
                                                               : "B";
  return fmt::format("{}/{}{}", measure_name(test.measure), test.bytes, unit);
}

/// `rail`: its name; empty: the test is of none.
std::string key_of(const std::vector<std::string>& names, std::string_view cell, std::string_view rail,
                   std::string_view system) {
  return fmt::format("{} {} {} {}", fmt::join(names, " "), cell, rail, system);
}

std::string rail_name(const Crew& crew, const Test& test) {
  return test.rail == kNoRail ? std::string() : crew.rails().at(static_cast<std::size_t>(test.rail));
}

/// Who plays it, where that is not the one that plays by default.
std::string_view system_name(const Test& test) { return test.is_bare ? "bare" : ""; }

std::string key_of(const Crew& crew, const Group& group, const Test& test) {
  std::vector<std::string> names;
  for (const int node : group) names.push_back(crew.name_of(node));
  return key_of(names, cell_name(test), rail_name(crew, test), system_name(test));
}

std::string line_of(const Document& line) { return text::json_text(line) + "\n"; }

Document document_of(const JournalHead& head) {
  Document line;
  line["kind"] = "accept";
  line["build"] = head.build;
  line["plan"] = head.plan;
  line["began_s"] = head.began_s;
  line["nodes"] = head.nodes;
  return line;
}

Result<Outcome> outcome_of(const nlohmann::json& line) {
  TUTTI_ASSIGN_OR_RETURN(const Ending ending, ending_named(line.at("ending").get<std::string>()));
  Outcome outcome{.ending = ending};
  if (ending == Ending::measured) {
    outcome.log_speed = line.at("log_speed").get<double>();
    if (!std::isfinite(outcome.log_speed)) return error(Code::invalid_argument, "'log_speed' is not finite");
  }
  if (line.contains("members")) {
    for (const nlohmann::json& one : line.at("members")) {
      outcome.members.push_back(one.is_null() ? std::numeric_limits<double>::quiet_NaN() : one.get<double>());
    }
  }
  if (line.contains("detail")) outcome.detail = line.at("detail").get<std::string>();
  outcome.seconds = line.at("seconds").get<double>();
  return outcome;
}

}  // namespace

void JournalCrew::begin(const JournalHead& head) const {
  if (write_) write_(line_of(document_of(head)));
}

void JournalCrew::set_round(std::string_view stage, int round) {
  stage_ = stage;
  round_ = round;
}

Result<std::size_t> JournalCrew::resume(std::string_view journal, const JournalHead& head) {
  const auto wrong = [](int line, std::string_view why) {
    return error(Code::invalid_argument, "line {}: {}", line, why);
  };
  int number = 0;
  std::size_t bytes = 0;
  while (!journal.empty()) {
    const std::size_t end = journal.find('\n');
    if (end == journal.npos) break;  // whoever wrote it was killed here
    const std::string_view text = journal.substr(0, end);
    journal.remove_prefix(end + 1);
    bytes += end + 1;
    ++number;
    const auto read = [&](const nlohmann::json& line) -> Status {
      if (number == 1) {
        if (line.at("kind").get<std::string>() != "accept")
          return error(Code::invalid_argument, "no journal of accept");
        if (line.at("build").get<std::string>() != head.build) {
          return error(Code::invalid_argument, "it is of build '{}', this is '{}'",
                       shown(line.at("build").get<std::string>()), head.build);
        }
        if (line.at("nodes").get<std::vector<std::string>>() != head.nodes) {
          return error(Code::invalid_argument, "it has other nodes");
        }
        if (line.at("plan").get<std::string>() != head.plan) {
          return error(Code::invalid_argument, "its plan is '{}', now it is '{}'",
                       shown(line.at("plan").get<std::string>()), head.plan);
        }
        std::int64_t began_s = 0;
        TUTTI_RETURN_IF_ERROR(text::read_number(line, "began_s", began_s, 0));
        const std::int64_t hours = (head.began_s - began_s) / 3600;
        if (hours >= kHoursOfJournal) {
          return error(Code::invalid_argument, "its tests are {} h old, and are worth something for {} h: begin anew",
                       hours, kHoursOfJournal);
        }
        return {};
      }
      TUTTI_ASSIGN_OR_RETURN(Outcome outcome, outcome_of(line));
      int play = 0;
      TUTTI_RETURN_IF_ERROR(text::read_number(line, "play", play, 0));
      std::string key = key_of(line.at("group").get<std::vector<std::string>>(), line.at("cell").get<std::string>(),
                               line.contains("rail") ? line.at("rail").get<std::string>() : std::string(),
                               line.contains("system") ? line.at("system").get<std::string>() : std::string());
      std::vector<Record>& records = recorded_[play];
      const bool begins_again = !records.empty() && records.front().key == key;  // it was cut off before
      if (begins_again) records.clear();
      records.push_back({std::move(key), std::move(outcome)});
      return {};
    };
    const Status status = text::read_json(Code::invalid_argument, "a line of a journal", text, read);
    if (!status.is_ok()) return wrong(number, status.message());
  }
  if (number == 0) return error(Code::invalid_argument, "it has no whole line");
  return bytes;
}

std::vector<std::vector<Outcome>> JournalCrew::known(const std::vector<Group>& groups,
                                                     const std::vector<Test>& tests) const {
  const auto recorded = recorded_.find(play_);
  if (recorded == recorded_.end() || recorded->second.size() != groups.size() * tests.size()) return {};
  std::vector<std::vector<Outcome>> outcomes;
  auto record = recorded->second.begin();
  for (const Group& group : groups) {
    outcomes.emplace_back();
    for (const Test& test : tests) {
      if (record->key != key_of(crew_, group, test)) return {};
      outcomes.back().push_back((record++)->outcome);
    }
  }
  return outcomes;
}

void JournalCrew::write(const Group& group, const Test& test, const Outcome& outcome, std::optional<double> of_alike) {
  if (!write_) return;
  Document line;
  line["stage"] = stage_;
  line["round"] = round_;
  line["play"] = play_;
  Document names = Document::array();
  for (const int node : group) names.push_back(crew_.name_of(node));
  line["group"] = std::move(names);
  line["cell"] = cell_name(test);
  if (test.rail != kNoRail) line["rail"] = rail_name(crew_, test);
  if (test.is_bare) line["system"] = system_name(test);
  line["attempt"] = ++attempts_[key_of(crew_, group, test)];
  line["ending"] = ending_name(outcome.ending);
  line["verdict"] = to_string(verdict_of_test(outcome, of_alike && running_.is_slow(*of_alike)));
  if (outcome.ending == Ending::measured) {
    line["log_speed"] = outcome.log_speed;  // exact: a resumed run then computes the same
    const bool is_time = test.measure == Measure::latency;
    const auto value = [is_time](double log_speed) {
      return is_time ? 1e6 * std::exp(-log_speed) : std::exp(log_speed);
    };
    line[unit_of(test.measure)] = value(outcome.log_speed);
    if (outcome.low && outcome.high) {
      line["low"] = value(is_time ? *outcome.high : *outcome.low);
      line["high"] = value(is_time ? *outcome.low : *outcome.high);
    }
    if (of_alike) line["of_fleet"] = std::expm1(*of_alike);
    if (!outcome.members.empty()) line["members"] = outcome.members;
  }
  if (!outcome.detail.empty()) line["detail"] = outcome.detail;
  line["seconds"] = outcome.seconds;
  write_(line_of(line));
}

void JournalCrew::pause() {
  if (!recorded_.contains(play_)) crew_.pause();
}

std::vector<std::vector<Outcome>> JournalCrew::play(const std::vector<Group>& groups, const std::vector<Test>& tests) {
  std::vector<std::vector<Outcome>> outcomes = known(groups, tests);
  if (outcomes.empty()) {
    outcomes = crew_.play(groups, tests);
    const auto ratios = running_.add(groups, tests, outcomes);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t j = 0; j < tests.size(); ++j) {
        if (outcomes[i][j].ending != Ending::interrupted) write(groups[i], tests[j], outcomes[i][j], ratios[i][j]);
      }
    }
  } else {
    static_cast<void>(running_.add(groups, tests, outcomes));
    for (const Group& group : groups) {
      for (const Test& test : tests) ++attempts_[key_of(crew_, group, test)];
    }
    taken_over_ += groups.size() * tests.size();
  }
  ++play_;
  return outcomes;
}

}  // namespace tutti::harness::accept
