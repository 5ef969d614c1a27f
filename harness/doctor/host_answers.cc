// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host_answers.h"

#include <algorithm>

#include "impl/types/names.h"

namespace tutti::harness::doctor {

std::optional<std::string_view> answer_in(std::string_view line) {
  for (std::size_t at = line.find(kWord); at != std::string_view::npos; at = line.find(kWord, at + 1)) {
    const std::string_view answer = line.substr(at + kWord.size());
    const char first = answer.empty() ? '\0' : answer.front();
    if (first == '{' || (first >= '0' && first <= '9')) return answer;
  }
  return std::nullopt;
}

Result<HostLook> look_among(std::string_view printed) {
  AnswerReader reader;
  reader.take(printed);
  if (const auto answer = reader.next()) return look_from_json(*answer);
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::string_view words = printed.substr(0, printed.find_last_not_of(kBlanks) + 1);
  return error(Code::io, "its process has printed no answer{}{}", words.empty() ? "" : ": ",
               shown(words.substr(words.rfind('\n') + 1)));
}

void AnswerReader::take(std::string_view bytes) {
  if (is_flooded()) return;
  bytes_.append(bytes.substr(0, kMostBytes + 1));
}

std::optional<std::string> AnswerReader::next() {
  for (std::size_t end; (end = bytes_.find('\n', searched_)) != std::string::npos;) {
    const std::string_view line = std::string_view(bytes_).substr(begin_, end - begin_);
    skipped_ += line.size() + 1;
    begin_ = searched_ = end + 1;
    if (const auto answer = answer_in(line)) {
      skipped_ = 0;
      return std::string(*answer);
    }
  }
  bytes_.erase(0, begin_);
  begin_ = 0;
  searched_ = bytes_.size();
  return std::nullopt;
}

}  // namespace tutti::harness::doctor
