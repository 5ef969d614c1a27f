// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "harness/doctor/host_answers.h"
#include "harness/doctor/host_look.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

std::vector<std::string> answers_in(std::string_view bytes, std::size_t at_once) {
  harness::doctor::AnswerReader reader;
  std::vector<std::string> answers;
  for (std::size_t at = 0; at < bytes.size(); at += at_once) {
    reader.take(bytes.substr(at, at_once));
    while (auto answer = reader.next()) answers.push_back(std::move(*answer));
  }
  return answers;
}

}  // namespace

void answers(std::string_view input) {
  const std::vector<std::string> all = answers_in(input, std::max<std::size_t>(input.size(), 1));
  TUTTI_ASSERT(answers_in(input, 7) == all, "in pieces it has other answers than the {} of the whole", all.size());
  for (const std::string& answer : all) {
    TUTTI_ASSERT(answer.find('\n') == std::string::npos, "an answer of several lines: {}", answer);
    if (const auto look = harness::doctor::look_from_json(answer); !look.is_ok()) check_message(look.status());
    if (const auto reach = harness::doctor::reaches_from_json(answer); !reach.is_ok()) check_message(reach.status());
  }
}

}  // namespace tutti::fuzz
