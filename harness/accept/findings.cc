// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/findings.h"

#include <utility>

namespace tutti::harness::accept {

bool is_of_leaf(const Finding& finding) { return finding.what == Class::uplink || finding.what == Class::uplink_dir; }

bool is_of_library(const Finding& finding) { return finding.what == Class::configuration; }

bool is_of_link(const Finding& finding) { return finding.second >= 0 && !is_of_leaf(finding); }

bool is_of_node(const Finding& finding) { return finding.first >= 0 && finding.second < 0 && !is_of_leaf(finding); }

bool is_about(const Finding& finding, int node) { return is_of_node(finding) && finding.first == node; }

bool is_broken(const Finding& finding) {
  if (finding.judgement.verdict != Verdict::fail) return false;  // an error lacks a rail, a suspect works again
  return finding.what == Class::wrong || finding.what == Class::dead || finding.what == Class::hung ||
         finding.what == Class::job || (finding.what == Class::either && finding.judgement.middle == 0);
}

bool excuses(const Finding& finding, int node, int leaf) {
  if (is_of_leaf(finding)) return finding.first == leaf || finding.second == leaf;
  return finding.what == Class::split || (is_of_link(finding) && (finding.first == node || finding.second == node));
}

int gravity_of(const Finding& finding) {
  constexpr int kOpen = 20;
  if (finding.judgement.verdict != Verdict::fail) return kOpen + static_cast<int>(finding.what);
  return static_cast<int>(finding.what);
}

Finding finding_of_group(Group group, const Outcome& failure, int tests) {
  return {.what = failure.ending == Ending::wrong ? Class::wrong : Class::hung,
          .judgement = {.verdict = Verdict::fail},
          .tests = tests,
          .members = std::move(group),
          .detail = failure.detail};
}

std::string_view to_string(Class what) {
  switch (what) {
    case Class::none:
      return "none";
    case Class::wrong:
      return "wrong";
    case Class::dead:
      return "dead";
    case Class::job:
      return "job";
    case Class::hung:
      return "hung";
    case Class::node:
      return "node";
    case Class::nic:
      return "nic";
    case Class::nic_out:
      return "nic-out";
    case Class::nic_in:
      return "nic-in";
    case Class::link:
      return "link";
    case Class::link_dir:
      return "link-dir";
    case Class::uplink:
      return "uplink";
    case Class::uplink_dir:
      return "uplink-dir";
    case Class::too_fast:
      return "too fast";
    case Class::unsteady:
      return "unsteady";
    case Class::split:
      return "split";
    case Class::fleet:
      return "fleet";
    case Class::either:
      return "either";
    case Class::configuration:
      return "configuration";
  }
  return "?";
}

}  // namespace tutti::harness::accept
