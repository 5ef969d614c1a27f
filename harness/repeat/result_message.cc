// SPDX-License-Identifier: Apache-2.0
#include "harness/repeat/result_message.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"

namespace tutti::harness::repeat {
namespace {

constexpr std::size_t kPartBytes = std::size_t{256} << 10U;
constexpr std::string_view kDigits = "0123456789abcdef";

/// The value of a digit; 16 of another letter.
std::size_t digit(char letter) { return std::min(kDigits.find(letter), kDigits.size()); }

Status no_part(std::string_view why) { return error(Code::invalid_argument, "a result of a rank: {}", why); }

}  // namespace

Status send_result(const CallResult& result, const std::function<Status(std::string_view text)>& send) {
  std::size_t at = 0;
  do {
    const auto part = std::span(result.bytes).subspan(at, std::min(kPartBytes, result.bytes.size() - at));
    std::string text = nlohmann::json{{"case", result.case_id},
                                      {"call", result.call},
                                      {"rank", result.rank},
                                      {"bytes", result.bytes.size()},
                                      {"at", at}}
                           .dump() +
                       "\n";
    for (const std::byte byte : part) {
      text += kDigits[std::to_integer<std::size_t>(byte) / kDigits.size()];
      text += kDigits[std::to_integer<std::size_t>(byte) % kDigits.size()];
    }
    TUTTI_RETURN_IF_ERROR(send(text));
    at += part.size();
  } while (at < result.bytes.size());
  return {};
}

Result<std::optional<CallResult>> ResultParts::add(std::string_view text) {
  const std::size_t line = text.find('\n');
  const nlohmann::json head = parse_json(text.substr(0, line));
  if (line == text.npos || !head.is_object()) return no_part("it has no line of JSON");
  const auto whole = [&](const char* name) {
    const auto value = head.find(name);
    const bool is_whole = value != head.end() && value->is_number_unsigned() && *value <= kMostResultBytes;
    return is_whole ? std::optional(value->get<std::size_t>()) : std::nullopt;
  };
  const auto call = whole("call"), rank = whole("rank"), bytes = whole("bytes"), at = whole("at");
  const auto of_case = head.find("case");
  if (!call || !rank || !bytes || !at || of_case == head.end() || !of_case->is_string()) {
    return no_part("it does not say whose it is");
  }
  const CallResult whose{.case_id = of_case->get<std::string>(),
                         .call = static_cast<int>(*call),
                         .rank = static_cast<int>(*rank),
                         .bytes = {}};
  if (*at == 0) {
    result_ = whose;
    result_.bytes.resize(*bytes);
    filled_ = 0;
  }
  const bool is_same = whose.case_id == result_.case_id && whose.call == result_.call && whose.rank == result_.rank;
  const std::string_view digits = text.substr(line + 1);
  if (!is_same || *at != filled_ || *bytes != result_.bytes.size()) return no_part("a part is missing before it");
  if (digits.size() % 2 != 0 || digits.size() / 2 > result_.bytes.size() - filled_)
    return no_part("its length is wrong");
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::size_t high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high >= kDigits.size() || low >= kDigits.size()) return no_part("it has other letters than digits");
    result_.bytes[filled_++] = static_cast<std::byte>(high * kDigits.size() + low);
  }
  if (filled_ < result_.bytes.size()) return std::optional<CallResult>();
  return std::optional(std::exchange(result_, CallResult()));
}

}  // namespace tutti::harness::repeat
