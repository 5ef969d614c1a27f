// SPDX-License-Identifier: Apache-2.0
#include "src/accept_command.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/process/command_run.h"
#include "harness/process/private_directory.h"
#include "harness/text/text.h"
#include "impl/types/printable.h"
#include "impl/types/status.h"

namespace tutti::program {
namespace {

namespace accept = harness::accept;
using Clock = std::chrono::steady_clock;

}  // namespace

std::vector<std::string> filled_command(std::vector<std::string> words, const std::vector<std::string>& names,
                                        const std::string& hostfile) {
  for (std::string& word : words) {
    word = harness::text::replaced(std::move(word), "{hosts}", fmt::format("{}", fmt::join(names, ",")));
    word = harness::text::replaced(std::move(word), "{hostfile}", hostfile);
    word = harness::text::replaced(std::move(word), "{nodes}", fmt::to_string(names.size()));
  }
  return words;
}

accept::Outcome CommandCrew::run_on(const accept::Group& group) const {
  std::vector<std::string> names;
  for (const int node : group) names.push_back(crew_.name_of(node));
  const auto failed = [](std::string_view why) {  // a program may say anything
    return accept::Outcome{.ending = accept::Ending::failed, .detail = harness::text::one_line(printable(why))};
  };
  auto directory = harness::PrivateDirectory::make(0);
  if (!directory.is_ok()) return failed(directory.status().message());
  const std::string hostfile = directory.value().path() + "/hosts";
  std::ofstream lines(hostfile);
  lines << fmt::format("{}\n", fmt::join(names, "\n"));
  lines.close();
  if (!lines) return failed("cannot write " + hostfile);

  const auto begin = Clock::now();
  std::chrono::duration<double> limit(command_.seconds);
  const bool is_cut = end_ && begin + limit > *end_;
  if (is_cut) limit = std::max(*end_ - begin, Clock::duration::zero());
  const auto run = harness::run_command(filled_command(command_.words, names, hostfile),
                                        std::chrono::ceil<std::chrono::milliseconds>(limit), interrupts_);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!run.is_ok()) {
    const bool is_late = run.status().code() == Code::timeout;
    if (run.status().code() == Code::aborted || (is_late && is_cut)) return {.ending = accept::Ending::interrupted};
    accept::Outcome outcome = failed(run.status().message());
    if (is_late) outcome.ending = accept::Ending::hung;
    outcome.seconds = seconds;
    return outcome;
  }
  if (run.value().exit_code != 0) {
    accept::Outcome outcome = failed(
        fmt::format("'{}' ended with {}: {}", command_.words.front(), run.value().exit_code, run.value().last_words()));
    outcome.seconds = seconds;
    return outcome;
  }
  return {.log_speed = -std::log(seconds), .seconds = seconds};
}

std::vector<std::vector<accept::Outcome>> CommandCrew::play(const std::vector<accept::Group>& groups,
                                                            const std::vector<accept::Test>& tests) {
  if (tests.front().measure != accept::Measure::command) return crew_.play(groups, tests);
  std::vector<std::vector<accept::Outcome>> outcomes;
  for (const accept::Group& group : groups) outcomes.push_back({run_on(group)});
  return outcomes;
}

}  // namespace tutti::program
