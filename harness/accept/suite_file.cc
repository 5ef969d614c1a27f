// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/suite_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/accept/toml_fields.h"
#include "harness/cases/sweep.h"
#include "harness/text/number.h"
#include "harness/text/text.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

using Names = std::vector<std::string>;

Status unknown_key(const toml::node& node, std::string_view key, const Names& keys) {
  return at_line(node, "{}", unknown_name("key", key, keys).message());
}

Result<std::vector<std::size_t>> sizes_of(const toml::node& node, std::string_view key) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(node, key));
  const auto sizes = parse_sizes(text);
  if (!sizes.is_ok()) return at_line(node, "'{}': {}", key, sizes.status().message());
  std::vector<std::size_t> bytes;
  for (const std::int64_t size : sizes.value()) {
    if (const Status fits = check_message_size(size); !fits.is_ok())
      return at_line(node, "'{}': {}", key, fits.message());
    bytes.push_back(static_cast<std::size_t>(size));
  }
  return bytes;
}

Status set_bytes(const toml::node& node, std::string_view key, std::size_t& to) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::size_t> sizes, sizes_of(node, key));
  if (sizes.size() != 1) return at_line(node, "'{}' has {} sizes: one is allowed, as '1M'", key, sizes.size());
  to = sizes.front();
  return {};
}

Result<Names> names_of(const toml::node& node, std::string_view key, std::string_view example) {
  const toml::array* const array = node.as_array();
  if (array == nullptr) return wrong_toml_type(node, key, fmt::format("a list of texts: {}", example));
  Names names;
  for (const toml::node& one : *array) {
    TUTTI_ASSIGN_OR_RETURN(std::string name, text_of(one, key));
    names.push_back(std::move(name));
  }
  return names;
}

Status set_time(const toml::node& node, double& seconds) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(node, "time"));
  const auto time = parse_duration(text);
  if (!time.is_ok()) return at_line(node, "'time': {}", time.status().message());
  seconds = std::chrono::duration<double>(time.value()).count();
  return {};
}

/// The collectives that tests of a stage may have.
struct TestsOf {
  std::string_view stage;
  std::string_view collective;
  Measure measure;
  bool has_many_sizes;
};
constexpr std::array kTests{TestsOf{"alone", "all_reduce", Measure::alone, true},
                            TestsOf{"pairs", "bandwidth", Measure::bandwidth, false},
                            TestsOf{"pairs", "pingpong", Measure::latency, false},
                            TestsOf{"shifts", "sendrecv", Measure::ring, false},
                            TestsOf{"rings", "sendrecv", Measure::ring, false},
                            TestsOf{"groups", "all_reduce", Measure::all_reduce, true},
                            TestsOf{"groups", "all_to_all", Measure::all_to_all, true}};

bool has_tests(std::string_view stage) { return std::ranges::find(kTests, stage, &TestsOf::stage) != kTests.end(); }

/// One stage of a suite while it is read.
class StageReader {
 public:
  StageReader(std::string name, AcceptPlan& plan) : name_(std::move(name)), plan_(plan) {}

  Status take(const toml::node& value, std::string_view key) {
    if (key == "blocking") return take_blocking(value);
    if (key == "needs") return take_needs(value);
    if (key == "tests" && has_tests(name_)) return take_tests(value);
    if (key == "schedule" && !schedule().empty()) return take_schedule(value);
    if (key == "deadline" && name_ == "pairs") return take_deadline(value);
    if (key == "time" && name_ == "soak") return set_time(value, plan_.soak_seconds);
    if (key == "time" && name_ == "job") return set_time(value, plan_.job.seconds);
    if (key == "command" && name_ == "job") return take_command(value);
    if (key == "full" && name_ == "pairs") {
      TUTTI_ASSIGN_OR_RETURN(plan_.pairs.is_full, flag_of(value, key));
      return {};
    }
    return unknown_key(value, key, keys());
  }

 private:
  [[nodiscard]] Names keys() const {
    Names keys{"name", "needs", "blocking"};
    const auto add = [&](bool has, std::initializer_list<const char*> more) {
      if (has) keys.insert(keys.end(), more.begin(), more.end());
    };
    add(has_tests(name_), {"tests"});
    add(!schedule().empty(), {"schedule"});
    add(name_ == "pairs", {"full", "deadline"});
    add(name_ == "soak", {"time"});
    add(name_ == "job", {"command", "time"});
    return keys;
  }

  /// The only one that the stage has; empty: it has none.
  [[nodiscard]] std::string_view schedule() const {
    return name_ == "pairs" ? "circle" : name_ == "shifts" ? "shift" : name_ == "rings" ? "ring" : "";
  }

  Status take_schedule(const toml::node& value) const {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(value, "schedule"));
    if (text == schedule()) return {};
    return at_line(value, "'schedule' is '{}': stage '{}' has the schedule '{}'", shown(text), name_, schedule());
  }

  Status take_blocking(const toml::node& value) {
    if (name_ == "inventory" && value.is_array()) {
      TUTTI_ASSIGN_OR_RETURN(plan_.differences, names_of(value, "blocking", "[\"memory\"]"));
      return {};
    }
    TUTTI_ASSIGN_OR_RETURN(const bool is_blocking, flag_of(value, "blocking"));
    if (!is_blocking) plan_.not_blocking.push_back(name_);
    return {};
  }

  Status take_needs(const toml::node& value) {
    TUTTI_ASSIGN_OR_RETURN(Names needs, names_of(value, "needs", "[\"alone\", \"pairs\"]"));
    const Names& all = all_stages();
    const Names before(all.begin(), std::ranges::find(all, name_));
    for (const std::string& stage : needs) {
      if (std::ranges::find(all, stage) == all.end()) {
        return at_line(value, "'needs': {}", unknown_name("stage", stage, all).message());
      }
      if (std::ranges::find(before, stage) != before.end()) continue;
      const std::string earlier = before.empty() ? "none is" : fmt::format("there are {}", text::joined(before));
      return at_line(value, "'needs': stage '{}' is not played before '{}': {}", stage, name_, earlier);
    }
    plan_.needs[name_] = std::move(needs);
    return {};
  }

  Status take_deadline(const toml::node& value) {
    constexpr double kLeast = 2, kMost = 1000, kUsual = 5;
    TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(value, "deadline"));
    const auto times = text.ends_with('x') ? text::number_in<double>(std::string_view(text).substr(0, text.size() - 1))
                                           : std::optional<double>();
    if (!times || !(*times >= kLeast && *times <= kMost)) {
      const double nearest = times && !std::isnan(*times) ? std::clamp(*times, kLeast, kMost) : kUsual;
      return at_line(value, "'deadline' is '{}': allowed are {:g}x to {:g}x: did you mean '{:g}x'?", shown(text),
                     kLeast, kMost, nearest);
    }
    plan_.deadline_times = *times;
    return {};
  }

  Status take_command(const toml::node& value) {
    TUTTI_ASSIGN_OR_RETURN(plan_.job.words, names_of(value, "command", "[\"./train.sh\", \"{hosts}\"]"));
    if (plan_.job.words.empty() || plan_.job.words.front().empty()) {
      return at_line(value, "'command' names no program: leave it out for a training");
    }
    for (const std::string& word : plan_.job.words) {
      if (word.find('\0') == word.npos) continue;
      return at_line(value, "'command' has the word '{}' with a zero byte, which no program is given", shown(word));
    }
    return {};
  }

  Status take_tests(const toml::node& value) {
    const toml::array* const tests = value.as_array();
    if (tests == nullptr) return wrong_toml_type(value, "tests", "a list of tables: [{collective = \"...\"}]");
    for (const toml::node& one : *tests) {
      if (one.as_table() == nullptr) return wrong_toml_type(one, "tests", "a list of tables");
      TUTTI_RETURN_IF_ERROR(take_test(*one.as_table()));
    }
    return {};
  }

  Status take_test(const toml::table& test) {
    const toml::node* const named = test.get("collective");
    const toml::node* const sizes = test.get("sizes");
    for (const auto& [key, value] : test) {
      const Names keys{"collective", "sizes", "check", "window", "directions"};
      if (std::ranges::find(keys, key.str()) == keys.end()) return unknown_key(value, key.str(), keys);
    }
    if (const toml::node* const check = test.get("check")) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_checked, flag_of(*check, "check"));
      if (!is_checked) return at_line(*check, "'check' is false: each result is verified, leave it out");
      if (test.size() == 1) return {};
    }
    Names collectives;
    for (const TestsOf& row : kTests) {
      if (row.stage == name_) collectives.emplace_back(row.collective);
    }
    if (named == nullptr || sizes == nullptr) {
      return at_line(test, "a test needs `collective = \"{}\", sizes = \"1M\"`", collectives.front());
    }
    TUTTI_ASSIGN_OR_RETURN(const std::string collective, text_of(*named, "collective"));
    const auto row = std::ranges::find_if(
        kTests, [&](const TestsOf& one) { return one.stage == name_ && one.collective == collective; });
    if (row == kTests.end()) {
      return at_line(*named, "in stage '{}': {}", name_, unknown_name("collective", collective, collectives).message());
    }
    if (std::ranges::find(collectives_, collective) != collectives_.end()) {
      return at_line(*named, "collective '{}' is there twice in stage '{}': name its sizes in one test", collective,
                     name_);
    }
    collectives_.push_back(collective);
    TUTTI_RETURN_IF_ERROR(take_window(test, row->measure == Measure::bandwidth));
    return take_sizes(*row, *sizes);
  }

  /// A culprit is told from its link by both directions, so there are always two.
  Status take_window(const toml::table& test, bool is_bandwidth) {
    for (const char* const key : {"window", "directions"}) {
      if (test.get(key) != nullptr && !is_bandwidth) {
        return at_line(*test.get(key), "'{}' is of bandwidth only: leave it out", key);
      }
    }
    if (const toml::node* const directions = test.get("directions")) {
      std::int64_t number = 0;
      if (!set_number(*directions, "directions", 2, 2, number).is_ok()) {
        return at_line(*directions, "'directions' must be 2: both are measured, or leave it out");
      }
    }
    if (const toml::node* const messages = test.get("window")) {
      std::int64_t window = 0;
      TUTTI_RETURN_IF_ERROR(set_number(*messages, "window", 1, kMostWindow, window));
      plan_.window = static_cast<int>(window);
    }
    return {};
  }

  Status take_sizes(const TestsOf& row, const toml::node& node) {
    if (!row.has_many_sizes) {
      return set_bytes(node, "sizes", row.measure == Measure::latency ? plan_.pairs.latency_bytes : plan_.bytes[name_]);
    }
    TUTTI_ASSIGN_OR_RETURN(std::vector<std::size_t> sizes, sizes_of(node, "sizes"));
    if (row.measure == Measure::alone) {
      plan_.alone_sizes = std::move(sizes);
      return {};
    }
    for (const std::size_t bytes : sizes) plan_.group_tests.push_back({.measure = row.measure, .bytes = bytes});
    return {};
  }

  std::string name_;
  AcceptPlan& plan_;
  Names collectives_;  ///< of its tests so far
};

/// Takes a stage over into the plan.
Status add_stage(const toml::node& node, AcceptPlan& plan) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "stage", "tables: [[stage]]");
  const toml::node* const named = table->get("name");
  if (named == nullptr) return at_line(node, "a stage needs `name = \"pairs\"`");
  TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(*named, "name"));
  const Names& all = all_stages();
  if (std::ranges::find(all, name) == all.end()) {
    return at_line(*named, "{}", unknown_name("stage", name, all).message());
  }
  if (std::ranges::find(plan.stages, name) != plan.stages.end()) {
    return at_line(*named, "stage '{}' is there twice: each is played once", name);
  }
  plan.stages.push_back(name);
  StageReader reader(name, plan);
  for (const auto& [key, value] : *table) {
    if (key.str() != "name") TUTTI_RETURN_IF_ERROR(reader.take(value, key.str()));
  }
  if (name == "job" && plan.job.words.empty() && table->contains("time")) {
    return at_line(*table->get("time"), "'time' is of a command: a training ends by itself, leave it out");
  }
  return {};
}

/// A stage can need only what is played.
Status check_needs(const toml::node& stages, const AcceptPlan& plan) {
  for (const auto& [stage, needs] : plan.needs) {
    for (const std::string& earlier : needs) {
      if (std::ranges::find(plan.stages, earlier) != plan.stages.end()) continue;
      return at_line(stages, "stage '{}' needs '{}', which is not played: add it, or leave it out of 'needs'", stage,
                     earlier);
    }
  }
  return {};
}

}  // namespace

Status check_message_size(std::int64_t bytes) {
  constexpr std::int64_t kElement = 4;  // a float
  if (bytes >= kElement && bytes <= kMostMessage && bytes % kElement == 0) return {};
  const std::int64_t nearest = std::clamp(bytes - bytes % kElement, kElement, kMostMessage);
  return error(Code::invalid_argument, "{} is no size of whole floats from {} to {}: did you mean '{}'?",
               format_bytes(bytes), kElement, format_bytes(kMostMessage), format_bytes(nearest));
}

Result<AcceptPlan> plan_from_toml(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const toml::table root, parse_toml(text));
  AcceptPlan plan;
  constexpr ShareRange kMargins{.least = kLeastMargin, .most = kMostMargin, .usual = 0.05};
  for (const auto& [key, value] : root) {
    if (key.str() == "margin") {
      TUTTI_RETURN_IF_ERROR(set_share(value, "margin", kMargins, plan.pairs.limits.margin));
    } else if (key.str() == "too_fast") {
      TUTTI_RETURN_IF_ERROR(set_share(value, "too_fast", kMargins, plan.pairs.limits.too_fast));
    } else if (key.str() == "confidence") {
      constexpr ShareRange kConfidences{.least = 0.9, .most = 0.9999, .usual = 0.999};
      TUTTI_RETURN_IF_ERROR(set_share(value, "confidence", kConfidences, plan.pairs.limits.confidence));
    } else if (key.str() == "message_size") {
      TUTTI_RETURN_IF_ERROR(set_bytes(value, "message_size", plan.pairs.bytes));
    } else if (key.str() == "seed") {
      std::int64_t seed = 0;
      TUTTI_RETURN_IF_ERROR(set_number(value, "seed", 0, std::int64_t{1} << 62, seed));
      plan.pairs.seed = static_cast<std::uint64_t>(seed);
    } else if (key.str() == "stage") {
      const toml::array* const stages = value.as_array();
      if (stages == nullptr) return wrong_toml_type(value, "stage", "tables: [[stage]]");
      plan.stages.clear();
      for (const toml::node& one : *stages) TUTTI_RETURN_IF_ERROR(add_stage(one, plan));
      if (plan.stages.empty()) return at_line(value, "'stage' names none: leave it out to play all");
      TUTTI_RETURN_IF_ERROR(check_needs(value, plan));
    } else {
      return unknown_key(value, key.str(), {"margin", "too_fast", "confidence", "message_size", "seed", "stage"});
    }
  }
  return plan;
}

}  // namespace tutti::harness::accept
