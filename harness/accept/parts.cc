// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/parts.h"

#include <cstddef>

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
  }
  if (finding.rail != kNoRail) part.name += ", " + rail_of(report, finding);
  return part;
}

bool blames(const Finding& finding, int node) {
  const bool is_its = finding.first == node || (is_of_link(finding) && finding.second == node);
  return is_its && !is_of_leaf(finding) && (is_of_node(finding) || finding.what == Class::wrong);
}

const Finding* blame_of(const AcceptReport& report, int node) {
  for (const Finding& finding : report.findings.parts) {
    if (blames(finding, node)) return &finding;
  }
  return nullptr;
}

}  // namespace tutti::harness::accept
