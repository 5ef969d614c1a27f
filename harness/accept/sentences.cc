// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "harness/cases/sweep.h"
#include "harness/text/counted.h"
#include "harness/text/text.h"

namespace tutti::harness::accept {
namespace {

/// "leaf B", and "leaf 30" beyond the letters.
std::string leaf_words(int leaf) {
  const std::string name = leaf_name(leaf);
  return name.size() == 1 ? "leaf " + name : name;
}

const std::string& name_of(const AcceptReport& report, int node) {
  return report.names.at(static_cast<std::size_t>(node));
}

std::string names_of(const AcceptReport& report, const std::vector<int>& nodes) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (const int node : nodes) {
    if (names.size() == kMostNamed) {
      names.push_back(fmt::format("{} more", nodes.size() - kMostNamed));
      break;
    }
    names.push_back(name_of(report, node));
  }
  return text::joined(names);
}

/// "14.2 % (12.9 to 15.6)", always positive; the interval if there is one.
std::string share_text(const Judgement& judgement) {
  const auto share = [](double log_ratio) { return 100 * std::abs(std::expm1(log_ratio)); };
  std::string text = fmt::format("{:.1f} %", share(judgement.middle));
  if (!judgement.low || !judgement.high) return text;
  const auto [least, most] = std::minmax({share(*judgement.low), share(*judgement.high)});
  const bool has_both_signs = (*judgement.low < 0) != (*judgement.high < 0);
  if (has_both_signs) return text;
  return fmt::format("{} ({:.1f} to {:.1f})", text, least, most);
}

std::string partners_text(const Finding& finding) {
  if (finding.partners == 0) return {};
  return fmt::format(" with {} of {} partners", finding.slow_partners, finding.partners);
}

std::string leaf_sentence(const AcceptReport& report, const Finding& finding) {
  const auto nodes = std::ranges::count(report.leaves, finding.first);
  const std::string leaf = leaf_words(finding.first);
  if (finding.second >= 0) {
    const std::string other = leaf_name(finding.second);
    return fmt::format(
        "everything from {} to {} is {} slower than the way back: the uplink of the one or of the other, "
        "two leaves cannot say",
        leaf, other.size() == 1 ? "leaf " + other : other, share_text(finding.judgement));
  }
  const char* way = "between {} and the other leaves";
  if (finding.what == Class::uplink_dir) {
    way = finding.is_out ? "from {} to the other leaves" : "from the other leaves to {}";
  }
  const std::string when = finding.detail.empty() ? "" : " " + finding.detail;
  return fmt::format("everything {} is {} slow{}, nothing within it: its uplink. Its {} {} not to blame",
                     fmt::format(fmt::runtime(way), leaf), share_text(finding.judgement), when,
                     text::counted(nodes, "node"), nodes == 1 ? "is" : "are");
}

std::string split_sentence(const AcceptReport& report, const Finding& finding) {
  const auto others = std::ssize(report.names) - std::ssize(finding.members) -
                      std::ranges::count_if(report.absences, [](const std::string& why) { return !why.empty(); });
  const bool is_below_baseline =
      std::ranges::any_of(report.findings.parts, [](const Finding& one) { return one.what == Class::fleet; });
  return fmt::format("{} {} {} slower{} than the other {}. {}. The slower ones: {}",
                     text::counted(finding.members.size(), "node"), finding.members.size() == 1 ? "is" : "are",
                     share_text(finding.judgement), finding.detail.empty() ? "" : " " + finding.detail, others,
                     is_below_baseline ? "Neither is as the baseline" : "Which is right, only --baseline says",
                     names_of(report, finding.members));
}

/// A part whose tests do not decide.
std::string open_sentence(const AcceptReport& report, const Finding& finding) {
  const std::string share = share_text(finding.judgement);
  std::string who = is_of_leaf(finding)   ? fmt::format("the uplink of {}", leaf_words(finding.first))
                    : is_of_link(finding) ? fmt::format("the path from {} to {}", name_of(report, finding.first),
                                                        name_of(report, finding.second))
                                          : name_of(report, finding.first);
  if (finding.what == Class::unsteady || finding.judgement.verdict == Verdict::suspect) {
    const std::string detail = finding.detail.empty() ? std::string() : fmt::format(" ({})", finding.detail);
    return fmt::format("{} is unsteady{}: its slowness comes and goes. Run again, or soak", who, detail);
  }
  if (finding.judgement.middle == 0 && !finding.judgement.low) {
    return fmt::format("{} is undecided: too few tests", who);
  }
  if (!finding.detail.empty()) {
    return fmt::format("{} is undecided: {} {} than the fleet, and {}", who, share,
                       finding.judgement.middle < 0 ? "slower" : "faster", finding.detail);
  }
  return fmt::format("{} is undecided: {} {} than the fleet after {}, and a margin of {:g} % lies in the interval", who,
                     share, finding.judgement.middle < 0 ? "slower" : "faster", text::counted(finding.visits, "visit"),
                     100 * report.limits.margin);
}

std::string node_sentence(const AcceptReport& report, const Finding& finding) {
  const std::string& name = name_of(report, finding.first);
  const std::string share = share_text(finding.judgement);
  const std::string partners = partners_text(finding);
  switch (finding.what) {
    case Class::node:
      if (!finding.detail.empty()) {
        return fmt::format("{} is slow {}: at least {} below the fleet: the node, not one of its NICs", name,
                           finding.detail, share);
      }
      if (finding.partners == 0) return fmt::format("{} is slow alone: {} below the fleet: the node", name, share);
      return fmt::format("{} is slow: {} below the fleet in both directions{}, and alone too: the node, not its link",
                         name, share, partners);
    case Class::nic:
      if (!finding.detail.empty()) {
        return fmt::format(
            "{} is slow {}: {} below the fleet, and in no quiet pair: its host, its card's slot, or its port", name,
            finding.detail, share);
      }
      return fmt::format("{} is slow: {} below the fleet in both directions{}, and not alone: its NIC, cable or port",
                         name, share, partners);
    case Class::nic_out:
      return fmt::format("{} sends {} slower than the fleet{}, and receives as fast: its transmit side, cable or port",
                         name, share, partners);
    case Class::nic_in:
      return fmt::format("{} receives {} slower than the fleet{}, and sends as fast: its receive side, cable or port",
                         name, share, partners);
    case Class::too_fast:
      return fmt::format("{} is {} faster than the fleet: another path, or another clock", name, share);
    case Class::dead:
      if (finding.thirds.empty()) return fmt::format("{} does not answer", name);
      return fmt::format("{} is dead: no answer to {}", name, names_of(report, finding.thirds));
    default:
      return fmt::format("{}: {}", name, to_string(finding.what));
  }
}

std::string link_sentence(const AcceptReport& report, const Finding& finding) {
  const std::string& first = name_of(report, finding.first);
  const std::string& second = name_of(report, finding.second);
  const std::string share = share_text(finding.judgement);
  const std::string thirds =
      finding.thirds.empty() ? std::string() : fmt::format(" (tried with {})", names_of(report, finding.thirds));
  switch (finding.what) {
    case Class::wrong:
      return fmt::format("{} receives wrong data from {}: {}", second, first, finding.detail);
    case Class::hung:
      return fmt::format("{} and {} hang with each other; both work with others{}", first, second, thirds);
    case Class::link:
      return fmt::format("{} and {} are slow with each other only, {}{}: the path between them", first, second, share,
                         thirds);
    case Class::link_dir:
      if (report.names.size() == 2) {
        return fmt::format(
            "{} sends to {} {} slower than the way back: a transmit side, a receive side or the path, two hosts cannot "
            "say. "
            "Add a third",
            first, second, share);
      }
      return fmt::format(
          "{} sends to {} {} slower than to others, and the way back is as fast{}: the path from {} to {}", first,
          second, share, thirds, first, second);
    case Class::too_fast:
      return fmt::format("{} and {} are {} faster with each other than the fleet: another path, such as loopback",
                         first, second, share);
    case Class::either:
      if (finding.judgement.middle == 0) {
        return fmt::format(
            "{} and {} do not work with each other: which of them, or the path, two hosts cannot say. "
            "Add a third",
            first, second);
      }
      return fmt::format(
          "{} and {} are {} {} the baseline together: which of them, or the path, two hosts cannot say. Add a third",
          first, second, share, finding.judgement.middle < 0 ? "below" : "above");
    default:
      return fmt::format("{} and {}: {}", first, second, to_string(finding.what));
  }
}

/// "; its other 3 rails passed", if they did.
std::string other_rails_text(const AcceptReport& report, const Finding& finding) {
  if (finding.rail == kNoRail || !is_of_node(finding) || report.rails.size() < 2) return {};
  for (int rail = 0; rail < std::ssize(report.rails); ++rail) {
    const auto& nodes = report.rails[static_cast<std::size_t>(rail)].findings.nodes;
    const bool has_passed = nodes.at(static_cast<std::size_t>(finding.first)).verdict == Verdict::pass;
    if (rail != finding.rail && (!has_passed || blame_on_rail(report, finding.first, rail) != nullptr)) return {};
  }
  return report.rails.size() == 2 ? "; its other rail passed"
                                  : fmt::format("; its other {} rails passed", report.rails.size() - 1);
}

/// "2 failed, 1 suspect".
std::string counts_text(const AcceptReport& report) {
  struct Row {
    Verdict verdict;
    const char* word;
  };
  std::vector<std::string> words;
  for (const Row& row : {Row{Verdict::fail, "failed"},
                         {Verdict::suspect, "suspect"},
                         {Verdict::undecided, "undecided"},
                         {Verdict::error, "not reached"},
                         {Verdict::untested, "untested"},
                         {Verdict::skipped, "skipped"}}) {
    int count = 0;
    for (int node = 0; node < std::ssize(report.names); ++node) count += verdict_of(report, node) == row.verdict;
    if (count > 0) words.push_back(fmt::format("{} {}", count, row.word));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// "wrong data between 2 nodes; 2 links and an uplink failed; a link undecided"; empty: nothing of the kind.
std::string parts_text(const AcceptReport& report) {
  const auto count = [&report](bool has_failed, auto is_one) {
    return std::ranges::count_if(report.findings.parts, [&](const Finding& finding) {
      return (finding.judgement.verdict == Verdict::fail) == has_failed && is_one(finding);
    });
  };
  const auto is_wrong = [](const Finding& finding) { return finding.what == Class::wrong; };
  const auto is_link = [](const Finding& finding) { return is_of_link(finding) && finding.what != Class::wrong; };
  std::vector<std::string> texts;
  if (const auto pairs = count(true, is_wrong); pairs > 0) {
    texts.push_back(fmt::format("wrong data in {}", text::counted(pairs, "group")));
  }
  for (const bool has_failed : {true, false}) {
    std::vector<std::string> words;
    const auto add = [&words](std::ptrdiff_t number, const char* one, const char* many) {
      if (number > 0) words.push_back(number == 1 ? one : fmt::format("{} {}", number, many));
    };
    add(count(has_failed, is_link), "a link", "links");
    add(count(has_failed, is_of_leaf), "an uplink", "uplinks");
    if (has_failed) add(count(true, is_of_library), "a configuration", "configurations");
    if (!words.empty()) texts.push_back(fmt::format("{} {}", text::joined(words), has_failed ? "failed" : "undecided"));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string pairs_text(const AcceptReport& report) {
  const Findings& findings = report.findings;
  if (findings.pairs == 0) return "no pair tested";
  const std::string rails =
      report.rails.empty() ? std::string() : fmt::format(" on {}", text::counted(report.rails.size(), "rail"));
  if (findings.tested_pairs == findings.pairs) {
    return fmt::format("every pair tested{1} ({0} of {0}, both ways)", with_commas(findings.pairs), rails);
  }
  return fmt::format("{} of {} pairs measured{}", with_commas(findings.tested_pairs), with_commas(findings.pairs),
                     rails);
}

}  // namespace

std::string signed_percent(double log_ratio) {
  const double percent = 100 * std::expm1(log_ratio);
  return std::abs(percent) < 0.05 ? "0.0" : fmt::format("{:+.1f}", percent);
}

std::string with_commas(long long number) {
  std::string digits = fmt::to_string(number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

namespace {

/// "-31.0 % (-33.1 to -29.0)".
std::string signed_share(const Judgement& judgement) {
  const std::string middle = signed_percent(judgement.middle) + " %";
  if (!judgement.low || !judgement.high) return middle;
  return fmt::format("{} ({} to {})", middle, signed_percent(*judgement.low), signed_percent(*judgement.high));
}

std::string configuration_sentence(const AcceptReport& report, const Finding& finding) {
  const std::string who = names_of(report, finding.members);
  const std::string& library = report.library;
  const std::string& bare = report.bare_system;
  const char* const are = finding.members.size() == 1 ? "is" : "are";
  if (finding.judgement.middle == 0) {
    return fmt::format("{} {} not well with {} ({}), and {} with {}: the configuration of {}, not the hardware", who,
                       are, library, finding.detail, are, bare, library);
  }
  if (finding.bare.verdict == Verdict::untested) {  // all of them, against the bare transport
    return fmt::format("on {} {} is slower than {} by {}: the configuration of {}, not the hardware",
                       text::counted(finding.members.size(), "node"), library, bare, share_text(finding.judgement),
                       library);
  }
  return fmt::format(
      "{} {} slow with {} only: {} against other nodes, and {} with {}: the configuration of {}, not the hardware", who,
      are, library, signed_share(finding.judgement), signed_share(finding.bare), bare, library);
}

std::string sentence_without_rail(const AcceptReport& report, const Finding& finding) {
  if (finding.judgement.verdict == Verdict::error) {
    return fmt::format("{} is not tested: {}", name_of(report, finding.first), finding.detail);
  }
  if (finding.what == Class::configuration) return configuration_sentence(report, finding);
  if (finding.what == Class::job) {
    return fmt::format("the command failed on {}: {}", names_of(report, finding.members), finding.detail);
  }
  const bool is_of_many = !finding.members.empty() && (finding.what == Class::wrong || finding.what == Class::hung);
  if (is_of_many) {
    return fmt::format("{} {} when they played together: {}", names_of(report, finding.members),
                       finding.what == Class::wrong ? "had wrong data" : "failed", finding.detail);
  }
  const bool failed_once = (finding.what == Class::hung || finding.what == Class::either) &&
                           finding.judgement.verdict == Verdict::suspect && finding.judgement.middle == 0;
  if (failed_once) {
    return fmt::format("{} and {} failed with each other once, and {}: {}", name_of(report, finding.first),
                       name_of(report, finding.second),
                       finding.tests > 1 ? "not when they played again" : "did not play again", finding.detail);
  }
  if (finding.what == Class::split) return split_sentence(report, finding);
  if (finding.what == Class::fleet) {
    return fmt::format("all {} are {} {} the baseline; none differs from the others",
                       text::counted(report.names.size(), "node"), share_text(finding.judgement),
                       finding.judgement.middle < 0 ? "below" : "above");
  }
  if (finding.judgement.verdict != Verdict::fail && finding.what != Class::wrong) return open_sentence(report, finding);
  if (is_of_leaf(finding)) return leaf_sentence(report, finding);
  return is_of_link(finding) ? link_sentence(report, finding) : node_sentence(report, finding);
}

}  // namespace

std::string sentence_of(const AcceptReport& report, const Finding& finding) {
  const std::string sentence = sentence_without_rail(report, finding);
  if (finding.rail == kNoRail) return sentence;
  return fmt::format("rail {}: {}{}", rail_of(report, finding), sentence, other_rails_text(report, finding));
}

std::string alike_sentence(const AcceptReport& report) {
  constexpr double kAlike = 0.01;  // of a speed
  std::vector<int> nodes;
  double least = 0, most = -std::numeric_limits<double>::infinity();
  for (const Finding& finding : report.findings.parts) {
    const bool is_slow = finding.judgement.verdict == Verdict::fail && !finding.judgement.is_fast;
    if (!is_slow || (finding.what != Class::node && finding.what != Class::nic)) continue;
    nodes.push_back(finding.first);
    least = std::min(least, finding.judgement.middle);
    most = std::max(most, finding.judgement.middle);
  }
  if (nodes.size() < 2 || most - least > kAlike * static_cast<double>(nodes.size())) return {};
  return fmt::format("{} are slower by the same share, {} to {} %: nodes of another kind look so too",
                     names_of(report, nodes), signed_percent(most), signed_percent(least));
}

std::vector<std::string> dip_sentences(const AcceptReport& report) {
  constexpr double kDip = 0.2;  // of the bandwidth
  std::vector<std::string> sentences;
  for (const SizeFigures& large : report.sizes) {
    const SizeFigures* best = nullptr;
    for (const SizeFigures& small : report.sizes) {
      const bool is_alike = small.nodes == large.nodes && small.test.measure == large.test.measure;
      if (!is_alike || small.test.bytes >= large.test.bytes) continue;
      if (best == nullptr || small.log_speed > best->log_speed) best = &small;
    }
    if (best == nullptr || large.log_speed > best->log_speed + std::log1p(-kDip)) continue;
    const auto bytes = [](const SizeFigures& one) { return format_bytes(static_cast<std::int64_t>(one.test.bytes)); };
    sentences.push_back(fmt::format("{} of {} on groups of {} has {:.0f} % less bandwidth than of {}: a dip",
                                    large.test.measure == Measure::all_reduce ? "all_reduce" : "all_to_all",
                                    bytes(large), large.nodes, -100 * std::expm1(large.log_speed - best->log_speed),
                                    bytes(*best)));
  }
  return sentences;
}

std::vector<std::string> untested_sentences(const AcceptReport& report) {
  std::vector<std::string> sentences;
  if (!report.are_leaves_known) {
    sentences.emplace_back("Leaves are not known, so uplinks are UNTESTED: --leaves 16, or a file");
  }
  if (report.are_leaves_known && std::set<int>(report.leaves.begin(), report.leaves.end()).size() == 2) {
    sentences.emplace_back(
        "Two leaves: an uplink that is slow both ways is UNTESTED, since no third leaf is beside it");
  }
  for (const StageReport& stage : report.stages) {
    if (stage.unmet.empty()) continue;
    sentences.push_back(fmt::format("Stage {} needs {}, which was left out: its nodes are UNTESTED there", stage.name,
                                    text::joined(stage.unmet)));
  }
  std::set<int> nodes;
  std::set<std::string> leaves;
  for (const Finding& finding : report.findings.parts) {
    if (finding.what == Class::split && finding.stage == "pairs") {
      sentences.emplace_back(
          "Links and single nodes are UNTESTED: two speeds hide them. --baseline says which is right");
    }
    const bool hides = finding.judgement.verdict == Verdict::fail && !finding.judgement.is_fast &&
                       finding.stage == "pairs" && finding.second < 0;
    if (hides && is_of_node(finding) && finding.what != Class::dead) nodes.insert(finding.first);
    if (hides && is_of_leaf(finding)) leaves.insert("between " + leaf_words(finding.first) + " and other leaves");
  }
  std::vector<std::string> hidden;
  if (!nodes.empty()) hidden.push_back("of " + names_of(report, {nodes.begin(), nodes.end()}));
  hidden.insert(hidden.end(), leaves.begin(), leaves.end());
  if (!hidden.empty()) {
    sentences.push_back(fmt::format("Links {} are UNTESTED: what is slow there hides them. Run again after the repair",
                                    text::joined(hidden)));
  }
  return sentences;
}

std::string verdict_sentence(const AcceptReport& report) {
  const Findings& findings = report.findings;
  const Conclusion conclusion = conclusion_of(report);
  std::string text;
  if (findings.is_interrupted) {
    text = findings.planned_rounds == 0
               ? "INCOMPLETE. "
               : fmt::format("INCOMPLETE: {} of {} rounds of pairs. ", findings.rounds, findings.planned_rounds);
  }
  if (conclusion == Conclusion::passed) {
    return fmt::format("{} passed, none failed, {}. Margin {:g} %; what is smaller was not looked for.",
                       text::counted(report.names.size(), "node"), pairs_text(report), 100 * report.limits.margin);
  }
  if (conclusion != Conclusion::interrupted) text += fmt::format("{}. ", to_string(conclusion));
  int passed = 0;
  for (int node = 0; node < std::ssize(report.names); ++node) passed += verdict_of(report, node) == Verdict::pass;
  const std::string counts = counts_text(report);
  if (findings.parts.size() == 1) {
    std::string sentence = sentence_of(report, findings.parts.front());
    const bool begins_with_a_word = std::ranges::any_of(std::array{"all ", "everything ", "on ", "the "},
                                                        [&](const char* word) { return sentence.starts_with(word); });
    if (begins_with_a_word)
      sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    text += sentence + ". ";
    if (passed > 0 && report.names.size() > 2) {
      text += passed == std::ssize(report.names)
                  ? fmt::format("All {} passed. ", text::counted(passed, "node"))
                  : fmt::format("{} of {} passed. ", passed, text::counted(report.names.size(), "node"));
    }
  } else {
    text += fmt::format("{} of {} passed", passed, text::counted(report.names.size(), "node"));
    if (!counts.empty()) text += ", " + counts;
    const std::string parts = parts_text(report);
    text += parts.empty() ? ". " : fmt::format("; {}. ", parts);
  }
  std::string pairs = pairs_text(report);
  pairs.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(pairs.front())));
  return fmt::format("{}{}.", text, pairs);
}

}  // namespace tutti::harness::accept
