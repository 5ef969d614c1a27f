// SPDX-License-Identifier: Apache-2.0
// The worked example in the head of every algorithm's file is what its generator emits. The test reads the comment, so
// neither can change without the other.
#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "impl/algorithms/algorithm.h"
#include "suites/unit/impl/schedule/print.h"

namespace tutti {
namespace {

struct Example {
  int ranks;
  std::vector<int> shown;  ///< ranks whose steps are written out
  bool is_listed;          ///< "step 0  ...": one by one; otherwise "rank 0  ...;  ..."
  int ranks_per_host = 0;
  int ranks_per_cache = 0;
};

/// The examples by collective and name; an algorithm that is not here is expected to show rank 0 of 4.
Example example_of(const Algorithm& algorithm) {
  static const std::map<std::string, Example> kOthers{
      {"all_reduce/circulant", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"all_reduce/halving", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"all_reduce/recursive_doubling", {.ranks = 5, .shown = {0, 1, 2}, .is_listed = true}},
      {"all_to_all/bruck", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"all_to_all/direct", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"all_to_all/linear", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"all_to_all/pairwise", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"all_gather/circulant", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"all_gather/direct", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"all_gather/recursive_doubling", {.ranks = 3, .shown = {0, 1}, .is_listed = true}},
      {"all_gather/halving", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"all_gather/two_level", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_host = 2}},
      {"all_reduce/two_level", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_host = 2}},
      {"barrier/two_level", {.ranks = 4, .shown = {0, 1}, .is_listed = true, .ranks_per_host = 2}},
      {"broadcast/two_level", {.ranks = 4, .shown = {0, 1}, .is_listed = true, .ranks_per_host = 2}},
      {"reduce_scatter/two_level", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_host = 2}},
      {"all_gather/nested", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_cache = 2}},
      {"all_reduce/nested_one_shot", {.ranks = 4, .shown = {0, 1}, .is_listed = true, .ranks_per_cache = 2}},
      {"all_reduce/nested_two_shot", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_cache = 2}},
      {"barrier/nested", {.ranks = 4, .shown = {0, 1}, .is_listed = true, .ranks_per_cache = 2}},
      {"broadcast/nested", {.ranks = 4, .shown = {0, 1, 2, 3}, .is_listed = true, .ranks_per_cache = 2}},
      {"reduce/nested", {.ranks = 4, .shown = {0, 1, 2, 3}, .is_listed = true, .ranks_per_cache = 2}},
      {"reduce_scatter/nested", {.ranks = 4, .shown = {0}, .is_listed = true, .ranks_per_cache = 2}},
      {"bandwidth/channel", {.ranks = 3, .shown = {0, 1}, .is_listed = true}},
      {"bandwidth/direct", {.ranks = 3, .shown = {0, 1}, .is_listed = true}},
      {"bibandwidth/channel", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"bibandwidth/direct", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"broadcast/chain", {.ranks = 4, .shown = {0, 1, 3}, .is_listed = true}},
      {"broadcast/direct", {.ranks = 4, .shown = {0, 1}, .is_listed = true}},
      {"broadcast/knomial", {.ranks = 8, .shown = {0, 4, 1}, .is_listed = false}},
      {"exscan/chain", {.ranks = 4, .shown = {0, 1, 3}, .is_listed = true}},
      {"exscan/one_shot", {.ranks = 4, .shown = {1}, .is_listed = true}},
      {"exscan/recursive_doubling", {.ranks = 4, .shown = {0, 1, 3}, .is_listed = true}},
      {"gather/direct", {.ranks = 3, .shown = {0, 1}, .is_listed = true}},
      {"gather/knomial", {.ranks = 6, .shown = {0, 4, 1}, .is_listed = true}},
      {"gather/linear", {.ranks = 4, .shown = {0, 1}, .is_listed = true}},
      {"message_rate/channel", {.ranks = 5, .shown = {0, 2}, .is_listed = true}},
      {"message_rate/direct", {.ranks = 5, .shown = {0, 2}, .is_listed = true}},
      {"pingpong/channel", {.ranks = 3, .shown = {0, 1, 2}, .is_listed = true}},
      {"pingpong/direct", {.ranks = 3, .shown = {0, 1, 2}, .is_listed = true}},
      {"reduce/knomial", {.ranks = 8, .shown = {0, 4, 1}, .is_listed = false}},
      {"reduce/one_shot", {.ranks = 4, .shown = {0, 1}, .is_listed = true}},
      {"reduce_scatter/circulant", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"reduce_scatter/halving", {.ranks = 5, .shown = {0}, .is_listed = true}},
      {"scan/chain", {.ranks = 4, .shown = {0, 1, 3}, .is_listed = true}},
      {"scan/direct", {.ranks = 3, .shown = {0}, .is_listed = true}},
      {"scan/one_shot", {.ranks = 4, .shown = {1}, .is_listed = true}},
      {"scan/recursive_doubling", {.ranks = 4, .shown = {0, 1, 3}, .is_listed = true}},
      {"scatter/direct", {.ranks = 4, .shown = {0, 1}, .is_listed = true}},
      {"scatter/knomial", {.ranks = 6, .shown = {0, 4, 1}, .is_listed = true}},
      {"scatter/linear", {.ranks = 4, .shown = {0, 1}, .is_listed = true}},
  };
  const auto other = kOthers.find(fmt::format("{}/{}", to_string(algorithm.collective), algorithm.name));
  return other != kOthers.end() ? other->second : Example{.ranks = 4, .shown = {0}, .is_listed = true};
}

/// A line of steps whose columns are aligned, with two spaces after the step's number.
std::string with_narrow_columns(std::string line) {
  for (std::size_t at = line.find("step "); at != std::string::npos; at = line.find("step ", at + 1)) {
    const std::size_t gap = line.find_first_not_of("0123456789", at + 5);
    if (gap == std::string::npos || line[gap] != ' ') continue;
    const std::size_t end = std::min(line.find_first_not_of(' ', gap), line.size());
    line.replace(gap, end - gap, "  ");
  }
  return line;
}

/// The comment at the head of the algorithm's file.
std::string head_of(const Algorithm& algorithm) {
  std::ifstream file(fmt::format("{}/{}/{}.cc", TUTTI_ALGORITHMS, to_string(algorithm.collective), algorithm.name));
  EXPECT_TRUE(file.is_open()) << algorithm.name;
  std::string head;
  for (std::string line; std::getline(file, line) && line.starts_with("//");) {
    head += with_narrow_columns(line.substr(2)) + "\n";
  }
  return head;
}

/// Whether the head holds `text` as a whole: nothing but a remark in brackets follows, or the next column.
bool shows(const std::string& head, const std::string& text) {
  for (std::size_t at = head.find(text); at != std::string::npos; at = head.find(text, at + 1)) {
    const std::string rest = head.substr(at + text.size(), 4);
    if (rest.starts_with("\n") || rest.starts_with("  ") || rest.starts_with(" (")) return true;
  }
  return false;
}

class Examples : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Examples, InTheHeadOfTheFileAreWhatTheGeneratorEmits) {
  const Algorithm& algorithm = *GetParam();
  const Example example = example_of(algorithm);
  const std::string head = head_of(algorithm);
  const Schedule schedule = schedule_of(algorithm, {.collective = algorithm.collective,
                                                    .ranks = example.ranks,
                                                    .ranks_per_host = example.ranks_per_host,
                                                    .ranks_per_cache = example.ranks_per_cache});
  EXPECT_THAT(head, testing::HasSubstr(fmt::format("P = {}", example.ranks)));
  std::size_t most = 0;
  for (const int rank : example.shown) {
    const std::vector<std::string> steps = texts_of(schedule, rank);
    if (!example.is_listed) {
      const std::string line = fmt::format("rank {}  {}", rank, fmt::join(steps, ";  "));
      EXPECT_TRUE(shows(head, line)) << line << "\nis not in\n" << head;
      continue;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string line = fmt::format("step {}  {}", i, steps[i]);
      EXPECT_TRUE(shows(head, line)) << line << "\nis not in\n" << head;
    }
    most = std::max(most, steps.size());
  }
  EXPECT_TRUE(!example.is_listed || head.find(fmt::format("step {}  ", most)) == std::string::npos)
      << "a step too many in\n"
      << head;
}

INSTANTIATE_TEST_SUITE_P(All, Examples, testing::ValuesIn(all_algorithms().begin(), all_algorithms().end()),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", to_string(instance.param->collective), instance.param->name);
                         });

}  // namespace
}  // namespace tutti
