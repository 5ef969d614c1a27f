// SPDX-License-Identifier: Apache-2.0
#include "impl/schedule/tuning.h"

#include <array>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "impl/types/names.h"

namespace tutti {
namespace {

constexpr std::array kAllStores{Stores::tried, Stores::plain, Stores::streamed, Stores::single_copy};
constexpr std::array<std::pair<char, unsigned>, 3> kUnits{{{'G', 30}, {'M', 20}, {'K', 10}}};

std::string size_text(std::int64_t bytes) {
  for (const auto& [letter, shift] : kUnits) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes >> shift, letter);
  }
  return fmt::to_string(bytes);
}

Status no_segment(std::string_view text) {
  return error(Code::invalid_argument,
               "'{}' is no length of a segment: 0 (the largest that fits) or 64 to 1G bytes: did you mean '64K'?",
               shown(text));
}

}  // namespace

std::string_view to_string(Stores stores) {
  switch (stores) {
    case Stores::plain:
      return "plain";
    case Stores::streamed:
      return "streamed";
    case Stores::single_copy:
      return "single_copy";
    case Stores::tried:
      break;
  }
  return "tried";
}

std::string to_text(const Tuning& tuning) {
  std::string text;
  if (tuning.segment_bytes > 0) text += fmt::format("{}{}", kTuningMark, size_text(tuning.segment_bytes));
  if (tuning.stores != Stores::tried) text += fmt::format("{}{}", kTuningMark, to_string(tuning.stores));
  return text;
}

Result<std::int64_t> segment_from(std::string_view text) {
  std::int64_t bytes = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (failure != std::errc() || bytes < 0 || bytes > kMostSegmentBytes) return no_segment(text);
  const std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  for (const auto& [letter, shift] : kUnits) {
    if (unit == std::string_view(&letter, 1)) {
      if (bytes > kMostSegmentBytes >> shift) return no_segment(text);
      bytes <<= shift;
      return bytes == 0 || bytes >= kLeastSegmentBytes ? Result<std::int64_t>(bytes) : no_segment(text);
    }
  }
  if (!unit.empty() || (bytes != 0 && bytes < kLeastSegmentBytes)) return no_segment(text);
  return bytes;
}

Result<Stores> stores_from(std::string_view text) {
  std::vector<std::string> names;
  for (const Stores one : kAllStores) {
    if (text == to_string(one)) return one;
    names.emplace_back(to_string(one));
  }
  return unknown_name("kind of stores", text, names);
}

Result<Tuning> tuning_from(std::string_view text) {
  Tuning tuning;
  while (!text.empty()) {
    text.remove_prefix(1);  // the mark
    const std::string_view part = text.substr(0, text.find(kTuningMark));
    text.remove_prefix(part.size());
    if (!part.empty() && part.front() >= '0' && part.front() <= '9') {
      TUTTI_ASSIGN_OR_RETURN(tuning.segment_bytes, segment_from(part));
    } else {
      TUTTI_ASSIGN_OR_RETURN(tuning.stores, stores_from(part));
    }
  }
  return tuning;
}

}  // namespace tutti
