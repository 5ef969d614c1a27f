// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/words.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/text/text.h"

namespace tutti::harness::explain {
namespace {

std::vector<int> members(const RankSet& set, int ranks) {
  std::vector<int> list;
  for (int i = 0; i < set.n; ++i) list.push_back(set.at(i, ranks));
  return list;
}

std::string vector_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(number_text(number));
  return texts.size() == 1 ? texts.front() : fmt::format("[{}]", fmt::join(texts, " "));
}

/// "a" and "b" of `op` as an operation of arithmetic.
std::string operation(Op op, const std::vector<std::string>& terms) {
  switch (op) {
    case Op::prod:
      return fmt::format("{}", fmt::join(terms, " * "));
    case Op::band:
      return fmt::format("{}", fmt::join(terms, " & "));
    case Op::bor:
      return fmt::format("{}", fmt::join(terms, " | "));
    case Op::bxor:
      return fmt::format("{}", fmt::join(terms, " ^ "));
    case Op::min:
    case Op::max:
      return fmt::format("{}({})", to_string(op), fmt::join(terms, ", "));
    default:
      return fmt::format("{}", fmt::join(terms, " + "));
  }
}

std::string combines(Op op) {
  switch (op) {
    case Op::prod:
      return "multiplies";
    case Op::min:
      return "takes the least of";
    case Op::max:
      return "takes the largest of";
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return fmt::format("combines by {}", to_string(op));
    default:
      return "adds";
  }
}

bool is_only(const RankSet& set, int rank) { return set.n == 1 && set.first == rank; }

std::string_view name_of(Space space) {
  return space == Space::input ? "input" : space == Space::output ? "output" : "scratch";
}

}  // namespace

bool Words::is_all_others(const std::vector<int>& ranks) const {
  return ranks.size() > 2 && static_cast<int>(ranks.size()) == schedule_.problem.ranks - 1;
}

/// "block b", "units c and d"; "the list" where it is one unit and there are no more.
std::string Words::units_text(const std::vector<int>& units) const {
  if (is_whole_) return "the list";
  return fmt::format("{}{} {}", noun(), units.size() == 1 ? "" : "s", letters(units));
}

int Words::total_units(Space space, int rank) const {
  if (space == Space::scratch) return schedule_.shape.scratch_units;
  const int blocks =
      space == Space::input ? input_blocks(schedule_.problem, rank) : output_blocks(schedule_.problem, rank);
  return blocks * example_.units;
}

/// "input", "block b of input"; the caller puts the owner before it.
std::string Words::part(Space space, int rank, const std::vector<int>& units) const {
  if (static_cast<int>(units.size()) == total_units(space, rank)) return "";
  const std::string kind = space == Space::scratch ? "unit" : noun();
  return fmt::format("{}{} {} of ", kind, units.size() == 1 ? "" : "s", letters(units));
}

std::vector<int> Words::members(const UnitSet& set, int total, int shift) const {
  std::vector<int> list;
  for (int j = 0; j < set.repeat; ++j) {
    for (int i = 0; i < set.length; ++i) list.push_back((set.start + shift + j * set.stride + i) % total);
  }
  return list;
}

/// An operand in memory: "its input", "block b of rank 1's input", "unit a of every rank's input".
std::string Words::what(const Operand& operand, int rank) const {
  const int ranks = schedule_.problem.ranks;
  const int owner = operand.ranks.first;
  const std::string units = part(operand.space, owner, members(operand.units, total_units(operand.space, owner), 0));
  const std::string_view space = name_of(operand.space);
  if (is_only(operand.ranks, rank)) return fmt::format("{}its {}", units, space);
  if (operand.ranks.n == ranks) return fmt::format("{}every rank's {}", units, space);
  if (operand.ranks.n == 1) return fmt::format("{}rank {}'s {}", units, owner, space);
  return fmt::format("{}the {} of {}", units, space, rank_list(harness::members(operand.ranks, ranks)));
}

std::string Words::allowed(const Exposure& exposure, const char* verb, int speaker, int target,
                           bool is_for_each) const {
  if (exposure.is_empty()) return "";
  const int total = total_units(exposure.space, speaker);
  const std::string_view space = name_of(exposure.space);
  if (is_for_each && exposure.per_target != 0) return fmt::format("{} your {} of my {}", verb, noun(), space);
  const std::vector<int> units = members(exposure.units, total, target * exposure.per_target);
  return fmt::format("{} {}my {}", verb, part(exposure.space, speaker, units), space);
}

/// What a SIGNAL says to `target`, or to each of several.
std::string Words::said(const Step& signal, int speaker, int target, bool is_for_each) const {
  if (!has_data(schedule_.problem.collective)) return fmt::format("I am here (round {})", signal.phase);
  const std::string read = allowed(signal.read, "read", speaker, target, is_for_each);
  const std::string write = allowed(signal.write, "write", speaker, target, is_for_each);
  if (read.empty() && write.empty()) return "I am done";
  return fmt::format("you may {}{}{}", read, read.empty() || write.empty() ? "" : " and ", write);
}

std::string Words::signal(const Told& told) const {
  const std::vector<int> targets = harness::members(told.step.ranks, schedule_.problem.ranks);
  return fmt::format("tells {}: \"{}\"", is_all_others(targets) ? "all others" : rank_list(targets),
                     said(told.step, told.rank, targets.front(), targets.size() > 1));
}

std::string Words::wait(const Told& told, const std::vector<Told>& before) const {
  // Ranks that said the same are named together.
  std::vector<std::pair<std::string, std::vector<int>>> speeches;
  for (const Heard& heard : told.heard) {
    const std::string text = said(heard.signal, heard.rank, told.rank, false);
    const auto same = std::ranges::find(speeches, text, &std::pair<std::string, std::vector<int>>::first);
    same != speeches.end() ? same->second.push_back(heard.rank) : speeches.push_back({text, {heard.rank}});
  }
  std::vector<std::string> clauses;
  for (auto& [text, ranks] : speeches) {
    clauses.push_back(
        fmt::format("for {} to say \"{}\"", is_all_others(ranks) ? "all others" : rank_list(ranks), text));
  }
  std::string sentence = "waits " + joined(clauses);
  const bool closes = std::ranges::all_of(
      told.heard, [](const Heard& heard) { return heard.signal.read.is_empty() && heard.signal.write.is_empty(); });
  if (!closes || !has_data(schedule_.problem.collective)) return sentence;
  bool has_read = false, has_written = false;
  for (const Told& one : before) {
    has_read |= !one.step.read.is_empty() && one.step.read.space == Space::input;
    has_written |= !one.step.write.is_empty() && one.step.write.space == Space::output;
  }
  if (has_written) sentence += ": its output is complete";
  if (has_read)
    sentence += has_written ? ", and no rank reads its input any more" : ": no rank reads its input any more";
  return sentence;
}

/// "stores it as block b of its output", "sends it to rank 1": what becomes of `thing`; of a copy, "to its output".
std::vector<std::string> Words::destinations(const Told& told, std::string_view thing) const {
  std::vector<std::string> clauses;
  std::vector<int> receivers;
  for (const Operand& destination : told.step.destinations) {
    if (destination.space == Space::channel) {
      receivers.push_back(destination.ranks.first);
    } else if (thing.empty()) {
      clauses.push_back("to " + what(destination, told.rank));
    } else {
      clauses.push_back(fmt::format("stores {} as {}", thing, what(destination, told.rank)));
    }
  }
  if (!receivers.empty()) {
    const bool is_named = clauses.empty() && !thing.empty();
    clauses.push_back(fmt::format("sends {} to {}", is_named ? thing : "it", rank_list(receivers)));
  }
  return clauses;
}

std::string Words::move(const Told& told) const {
  std::vector<std::string> clauses, parts;
  std::vector<int> senders;
  const bool is_several = told.units.size() > 1;
  for (const Operand& source : told.step.sources) {
    if (source.space != Space::channel) {
      parts.push_back(what(source, told.rank));
    } else {
      senders.push_back(source.ranks.first);
    }
  }
  const bool is_from_several = senders.size() > 1;
  if (!senders.empty()) {
    clauses.push_back(fmt::format("receives {} from {}{}", units_text(told.units), is_from_several ? "each of " : "",
                                  rank_list(senders)));
  }
  const auto and_then = [&](std::string_view thing) {
    for (std::string& clause : destinations(told, thing)) clauses.push_back(std::move(clause));
    return in_order(clauses);
  };
  if (told.sources.size() > 1) {
    if (is_from_several) parts.insert(parts.begin(), "them");
    clauses.push_back(fmt::format("{} {}", combines(example_.op), joined(parts)));
    return and_then("the result");
  }
  if (parts.empty()) return and_then(is_several ? "them" : "it");
  const Operand& source = *told.step.sources.begin();
  if (!is_only(source.ranks, told.rank)) {
    clauses.push_back("reads " + parts[0]);
    return and_then(is_several ? "them" : "it");
  }
  const bool is_sent_only = std::ranges::all_of(
      told.step.destinations, [](const Operand& destination) { return destination.space == Space::channel; });
  if (is_sent_only) return and_then(parts[0]);
  return fmt::format("copies {} {}", parts[0], joined(destinations(told, "")));
}

std::string Words::sentence(const Told& told, const std::vector<Told>& before) const {
  if (told.step.verb == Verb::signal) return signal(told);
  if (told.step.verb == Verb::wait) return wait(told, before);
  std::string text = move(told);
  if (told.result.empty()) text += " (it is empty)";
  // Steps are numbered from 1, and the next one comes after this one.
  if (told.step.in_turn_with_next) text += fmt::format(", slice by slice in turn with step {}", before.size() + 2);
  return text;
}

std::string Words::arithmetic(const Told& told) const {
  if (told.step.verb != Verb::move || told.sources.size() < 2 || told.result.empty()) return "";
  std::vector<std::string> terms;
  for (const auto& source : told.sources) terms.push_back(vector_text(source));
  std::string text = operation(example_.op, terms);
  const bool is_divided = told.step.is_final && example_.op == Op::avg;
  if (is_divided) text = fmt::format("({}) / {}", text, schedule_.problem.ranks);
  return fmt::format("{} = {}", text, vector_text(told.result));
}

Words::Parties Words::parties(const Told& told) const {
  const auto add = [&](std::vector<int>& list, const Operand& operand) {
    for (const int rank : harness::members(operand.ranks, schedule_.problem.ranks)) {
      const bool is_me = operand.space != Space::channel && rank == told.rank;
      if (!is_me && std::ranges::find(list, rank) == list.end()) list.push_back(rank);
    }
  };
  Parties parties;
  for (const Operand& source : told.step.sources) add(parties.from, source);
  for (const Operand& destination : told.step.destinations) add(parties.to, destination);
  std::ranges::sort(parties.from);
  std::ranges::sort(parties.to);
  return parties;
}

std::string Words::cell(const Told& told) const {
  if (told.round == 0) return "";
  constexpr std::size_t kWrittenOut = 3;
  const auto who = [&](const std::vector<int>& list) {
    if (is_all_others(list)) return std::string("all");
    const bool is_range = list.size() > kWrittenOut && list.back() - list.front() + 1 == std::ssize(list);
    return is_range ? fmt::format("{}-{}", list.front(), list.back()) : fmt::format("{}", fmt::join(list, ","));
  };
  const auto [from, to] = parties(told);
  std::string units;
  for (const int unit : told.units) units += letter(unit);
  if (told.units.size() > kWrittenOut) units = letter(told.units.front()) + "-" + letter(told.units.back());
  return fmt::format("{}{}{}{}{}{}", who(from), from.empty() ? "" : ">", told.sources.size() > 1 ? "+" : "", units,
                     to.empty() ? "" : ">", who(to));
}

std::string Words::cell_meaning(const Told& told) const {
  const auto who = [&](const std::vector<int>& list) { return is_all_others(list) ? "all others" : rank_list(list); };
  const auto [from, to] = parties(told);
  const std::string units = letters(told.units);
  std::vector<std::string> clauses;
  if (!from.empty()) clauses.push_back(fmt::format("takes {} from {}", units, who(from)));
  if (told.sources.size() > 1) clauses.push_back("combines it with its own");
  if (!to.empty()) clauses.push_back(fmt::format("gives {} to {}", from.empty() ? units : "it", who(to)));
  return fmt::format("`{}` {}", cell(told), in_order(clauses));
}

}  // namespace tutti::harness::explain
