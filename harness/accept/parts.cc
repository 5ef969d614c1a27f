// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/parts.h"

#include <array>
#include <cstddef>
#include <ctime>

#include <fmt/format.h>

namespace tutti::harness::accept {

PartNames names_of_part(const AcceptReport& report, const Finding& finding) {
  PartNames part{.kind = "fleet", .name = "fleet"};
  if (is_of_link(finding)) {
    part = {.kind = "link",
            .name = fmt::format("{}, {}", report.names.at(static_cast<std::size_t>(finding.first)),
                                report.names.at(static_cast<std::size_t>(finding.second)))};
  } else if (is_of_leaf(finding)) {
    part = {.kind = "uplink", .name = leaf_name(finding.first)};
  } else if (is_of_library(finding)) {
    part = {.kind = "configuration", .name = report.library};
  } else if (finding.what == Class::job) {
    part = {.kind = "job", .name = "command"};
  }
  if (finding.rail != kNoRail) part.name += ", " + rail_of(report, finding);
  return part;
}

const Finding* blame_of(const AcceptReport& report, int node) {
  for (const Finding& finding : report.findings.parts) {
    if (blames(finding, node)) return &finding;
  }
  return nullptr;
}

std::string utc_minute(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%MZ", &utc)};
}

}  // namespace tutti::harness::accept
