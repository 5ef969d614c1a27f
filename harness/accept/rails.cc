// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/rails.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "impl/types/host_name.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

/// The graver of two.
Verdict worse_of(Verdict one, Verdict other) {
  constexpr std::array kGravestFirst{Verdict::fail,      Verdict::error,   Verdict::untested, Verdict::suspect,
                                     Verdict::undecided, Verdict::skipped, Verdict::pass};
  return std::ranges::find(kGravestFirst, one) <= std::ranges::find(kGravestFirst, other) ? one : other;
}

void take_least(std::optional<double>& to, const std::optional<double>& one) {
  if (one && (!to || *one < *to)) to = one;
}

/// What is merged if every rail has it.
enum class Alike { none, slow_node, dead, hung };

Alike likeness_of(const Finding& finding) {
  if (finding.judgement.verdict != Verdict::fail) return Alike::none;
  switch (finding.what) {
    case Class::node:
    case Class::nic:
    case Class::nic_out:
    case Class::nic_in:
      return Alike::slow_node;
    case Class::dead:
      return Alike::dead;
    case Class::hung:
      return finding.members.empty() ? Alike::hung : Alike::none;
    default:
      return Alike::none;
  }
}

Finding merged(const std::vector<Finding>& of_rails, Alike alike, const std::vector<std::string>& names) {
  const auto by_middle = [](const Finding& one) { return one.judgement.middle; };
  Finding all = alike == Alike::slow_node ? *std::ranges::max_element(of_rails, {}, by_middle) : of_rails.front();
  all.rail = kNoRail;
  all.tests = 0;
  for (const Finding& one : of_rails) all.tests += one.tests;
  if (alike != Alike::slow_node) return all;
  std::vector<std::string> shares;
  for (const Finding& one : of_rails) {
    shares.push_back(fmt::format("{} {:.1f} %", names.at(static_cast<std::size_t>(one.rail)),
                                 -100 * std::expm1(one.judgement.middle)));
  }
  all.what = Class::node;
  all.detail = fmt::format("on {} rails ({})", of_rails.size() == 2 ? "both" : fmt::format("all {}", of_rails.size()),
                           fmt::join(shares, ", "));
  return all;
}

}  // namespace

Status check_rail(std::string_view text) {
  const std::string_view address = text.substr(0, text.find('/'));
  const bool has_letter = std::ranges::any_of(address, [](unsigned char c) { return std::isalpha(c) != 0; });
  const bool is_name = has_letter && address.find(':') == address.npos;
  if (!is_name && address.size() == text.size() && !text.empty()) {
    return error(Code::invalid_argument,
                 "'{}' is an address, which one host has: did you mean the name of an interface, or a network as "
                 "'192.0.2.0/24'?",
                 shown(text));
  }
  if (is_name && address.size() != text.size()) {
    return error(Code::invalid_argument, "'{}' is neither an interface nor a network: did you mean '{}'?", shown(text),
                 shown(address));
  }
  return check_interface(address);
}

Result<std::vector<std::string>> parse_rails(std::string_view text) {
  std::vector<std::string> rails;
  for (;;) {
    const std::string_view one = text.substr(0, text.find(','));
    TUTTI_RETURN_IF_ERROR(check_rail(one));
    if (std::ranges::find(rails, one) != rails.end()) {
      return error(Code::invalid_argument, "'{}' is there twice: each rail is named once", shown(one));
    }
    rails.emplace_back(one);
    if (rails.size() > kMostRails) return error(Code::invalid_argument, "there are more than {} rails", kMostRails);
    if (one.size() == text.size()) return rails;
    text.remove_prefix(one.size() + 1);
  }
}

std::string OnRail::absence_of(int node) const {
  std::string absence = crew_.absence_of(node);
  return absence.empty() ? crew_.absence_of_rail(node, rail_) : absence;
}

std::vector<std::vector<Outcome>> OnRail::play(const std::vector<Group>& groups, const std::vector<Test>& tests) {
  std::vector<Test> of_rail = tests;
  for (Test& test : of_rail) {
    if (test.measure != Measure::alone) test.rail = rail_;
  }
  return crew_.play(groups, of_rail);
}

void add_rail(Findings& all, const Findings& of_rail, int rail) {
  all.nodes.resize(std::max(all.nodes.size(), of_rail.nodes.size()));
  for (std::size_t node = 0; node < of_rail.nodes.size(); ++node) {
    const NodeFigures& figures = of_rail.nodes[node];
    NodeFigures& whole = all.nodes[node];
    whole.verdict = rail == 0 ? figures.verdict : worse_of(whole.verdict, figures.verdict);
    take_least(whole.out, figures.out);
    take_least(whole.in, figures.in);
    take_least(whole.latency, figures.latency);
    if (figures.worst && (!whole.worst || *figures.worst < *whole.worst)) {
      whole.worst = figures.worst;
      whole.worst_partner = figures.worst_partner;
    }
    whole.tests += figures.tests;
  }
  all.pairs += of_rail.pairs;
  all.tested_pairs += of_rail.tested_pairs;
  all.rounds += of_rail.rounds;
  all.planned_rounds += of_rail.planned_rounds;
  all.repeats += of_rail.repeats;
  all.is_interrupted |= of_rail.is_interrupted;
  for (Finding part : of_rail.parts) {
    part.rail = rail;
    all.parts.push_back(std::move(part));
  }
}

void merge_rails(std::vector<Finding>& parts, const std::vector<std::string>& names) {
  using Key = std::tuple<Alike, int, int>;
  const auto key_of = [](const Finding& one) { return Key(likeness_of(one), one.first, one.second); };
  std::map<Key, std::vector<Finding>> alike;
  for (const Finding& one : parts) {
    if (likeness_of(one) == Alike::none || one.rail == kNoRail) continue;
    std::vector<Finding>& same = alike[key_of(one)];
    if (std::ranges::find(same, one.rail, &Finding::rail) == same.end()) same.push_back(one);
  }
  for (const auto& row : alike) {
    const Key& key = row.first;
    const std::vector<Finding>& of_rails = row.second;
    if (of_rails.size() != names.size() || names.size() < 2) continue;
    std::erase_if(parts, [&](const Finding& one) { return one.rail != kNoRail && key_of(one) == key; });
    parts.push_back(merged(of_rails, std::get<Alike>(key), names));
  }
  for (Finding& one : parts) {
    if (one.rail != kNoRail && one.what == Class::node) one.what = Class::nic;
  }
  std::ranges::stable_sort(parts, {}, gravity_of);
}

}  // namespace tutti::harness::accept
