// SPDX-License-Identifier: Apache-2.0
#include "harness/record/samples.h"

#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cases/lists.h"
#include "harness/record/csv.h"
#include "harness/record/csv_reader.h"
#include "harness/text/number.h"
#include "impl/types/names.h"

namespace tutti::harness::record {
namespace {

// Why a sample does not count.
constexpr std::string_view kStateWord = "state";
constexpr std::string_view kLateWord = "late";

}  // namespace

std::string samples_header() {
  return "case,launch,index,valid,global_us,last_arrival_us,skew_us,arrived_last,finished_last,rank_us,late_us,block,"
         "why,starter,rank_arrived_us";
}

std::string samples_lines(const SampledLaunch& of, std::span<const Sample> samples) {
  const std::string name = csv_field(of.case_id), starter = csv_field(of.starter);
  std::string lines;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& one = samples[i];
    const bool counts = one.is_valid && one.is_of_state;
    lines += fmt::format("{},{},{},{},{:.9g},{:.9g},{:.9g},{},{},{:.9g},{},{},{},{},{:.9g}\n", name, of.launch, i,
                         counts ? 1 : 0, one.global_us, one.last_arrival_us, one.skew_us, one.arrived_last,
                         one.finished_last, fmt::join(one.rank_us, " "),
                         one.late_us ? fmt::format("{:.9g}", *one.late_us) : "", one.block,
                         !one.is_of_state ? kStateWord
                         : !one.is_valid  ? kLateWord
                                          : "",
                         starter, fmt::join(one.rank_arrived_us, " "));
  }
  return lines;
}

bool are_samples(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.starts_with("case,launch,index,") && first.find(",global_us,") != std::string_view::npos;
}

Result<std::vector<SampledCase>> samples_from_csv(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const auto lines, fields_of_csv(text));
  if (lines.empty()) return error(Code::invalid_argument, "it is empty: the first line names the columns");
  const auto& names = lines.front();
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places[names[i]] = i;
  for (const char* needed : {"case", "launch", "global_us", "skew_us", "arrived_last", "finished_last", "why"}) {
    if (!places.contains(needed)) return error(Code::invalid_argument, "no column '{}' in its first line", needed);
  }
  std::vector<SampledCase> cases;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> known;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto field = [&](const char* name) -> const std::string& { return lines[i][places[name]]; };
    Status damage;
    const auto number = [&]<class T>(const char* name, T&& otherwise) {
      const auto value = number_in<std::decay_t<T>>(field(name));
      if (!value && damage.is_ok())
        damage = error(Code::invalid_argument, "sample {}: column '{}' cannot be '{}'", i, name, shown(field(name)));
      return value.value_or(otherwise);
    };
    const std::int64_t launch = number("launch", std::int64_t{1});
    Sample sample;
    sample.global_us = number("global_us", 0.0);
    sample.skew_us = number("skew_us", 0.0);
    sample.arrived_last = number("arrived_last", 0);
    sample.finished_last = number("finished_last", 0);
    const auto numbers = [&](const char* name, std::vector<double>& to) {
      if (!places.contains(name)) return;  // of an earlier build
      for (const std::string_view word : split(field(name), ' ')) {
        const auto value = number_in<double>(word);
        if (value) to.push_back(*value);
        if (!value && !word.empty() && damage.is_ok())
          damage = error(Code::invalid_argument, "sample {}: column '{}' cannot be '{}'", i, name, shown(field(name)));
      }
    };
    numbers("rank_us", sample.rank_us);
    numbers("rank_arrived_us", sample.rank_arrived_us);
    sample.is_valid = field("why") != kLateWord;
    sample.is_of_state = field("why") != kStateWord;
    TUTTI_RETURN_IF_ERROR(damage);
    const auto [place, is_new] = known.try_emplace({field("case"), launch}, cases.size());
    if (is_new) {
      cases.push_back({{.case_id = field("case"),
                        .launch = launch,
                        .starter = places.contains("starter") ? field("starter") : std::string()},
                       {}});
    }
    cases[place->second].samples.push_back(std::move(sample));
  }
  return cases;
}

Result<SamplesFile> SamplesFile::open(std::string path) {
  TUTTI_ASSIGN_OR_RETURN(LineFile file, LineFile::open(std::move(path)));
  TUTTI_RETURN_IF_ERROR(file.append(samples_header() + "\n"));
  return SamplesFile(std::move(file));
}

}  // namespace tutti::harness::record
