// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/page.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/explain/text.h"
#include "harness/explain/words.h"

namespace tutti::harness {
namespace {

constexpr std::string_view kUnwritten = ".";

std::string text_of(const std::optional<double>& number) {
  return number ? number_text(*number) : std::string(kUnwritten);
}

/// One column of buffers, all ranks' below each other: blocks are set apart, each number is as wide as the widest.
class Column {
 public:
  Column(std::string title, std::vector<Numbers> numbers, int per_block, int per_unit)
      : title_(std::move(title)), numbers_(std::move(numbers)), per_block_(per_block), per_unit_(per_unit) {
    for (const Numbers& rank : numbers_) {
      most_ = std::max(most_, rank.size());
      for (const auto& number : rank) cell_ = std::max(cell_, text_of(number).size());
    }

    width_ = std::max({title_.size(), std::string("(none)").size(), numbers_text(Numbers(most_)).size()});
  }

  [[nodiscard]] std::string title() const { return fmt::format("{:<{}}", title_, width_); }
  /// The letters above the numbers, where there is more than one unit.
  [[nodiscard]] std::string letters() const {
    std::vector<std::string> texts(most_);
    for (std::size_t i = 0; per_unit_ > 0 && i < most_; i += static_cast<std::size_t>(per_unit_)) {
      texts[i] = letter(static_cast<int>(i) / per_unit_);
    }
    return fmt::format("{:<{}}", laid_out(texts), width_);
  }
  [[nodiscard]] std::string line(std::size_t rank) const {
    const Numbers& numbers = numbers_[rank];
    return fmt::format("{:<{}}", numbers.empty() ? "(none)" : numbers_text(numbers), width_);
  }

 private:
  [[nodiscard]] std::string numbers_text(const Numbers& numbers) const {
    std::vector<std::string> texts;
    for (const auto& number : numbers) texts.push_back(text_of(number));
    return laid_out(texts);
  }
  [[nodiscard]] std::string laid_out(const std::vector<std::string>& texts) const {
    std::string line;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const bool is_new_block = i > 0 && i % static_cast<std::size_t>(per_block_) == 0 && per_block_ > 1;
      line += fmt::format("{}{:>{}}", i == 0 ? "" : is_new_block ? "  " : " ", texts[i], cell_);
    }
    return line;
  }

  std::string title_;
  std::vector<Numbers> numbers_;  // [rank]
  int per_block_;
  int per_unit_;  // 0: its units have no letters
  std::size_t most_ = 0;
  std::size_t cell_ = 1;
  std::size_t width_ = 0;
};

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string table(const std::vector<Column>& columns, std::size_t ranks) {
  std::string titles(9, ' '), letters(9, ' '), lines;
  for (const Column& column : columns) {
    titles += "    " + column.title();
    letters += "    " + column.letters();
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::string line = fmt::format("  rank {:<2}", rank);
    for (const Column& column : columns) line += "    " + column.line(rank);
    lines += without_trailing_spaces(std::move(line));
  }
  const bool has_letters = letters.find_first_not_of(' ') != std::string::npos;
  return without_trailing_spaces(titles) + (has_letters ? without_trailing_spaces(letters) : "") + lines;
}

std::vector<Numbers> side(const std::vector<Pair>& pairs, Numbers Pair::*which) {
  std::vector<Numbers> list;
  for (const Pair& pair : pairs) list.push_back(pair.*which);
  return list;
}

std::string buffers_table(const Example& example, const std::vector<Pair>& pairs) {
  const auto column = [&](const char* title, Numbers Pair::*which) {
    std::vector<Numbers> numbers = side(pairs, which);
    const std::size_t most = std::ranges::max(numbers, {}, &Numbers::size).size();
    const bool is_larger = most == static_cast<std::size_t>(units_of(example) * example.shown / example.units);
    return Column(title, std::move(numbers), example.shown, is_larger ? example.shown / example.units : 0);
  };
  return table({column("input", &Pair::input), column("output", &Pair::output)}, pairs.size());
}

/// What the marks in a table of buffers mean, as far as they appear.
std::string legend(const Example& example) {
  const bool is_block = example.units == 1;
  std::string text = "`a` is the whole list.";
  if (units_of(example) > 1) {
    text = fmt::format("The letters name the {}s{}.", is_block ? "block" : "unit",
                       is_block ? ", one for each rank" : ", the parts that ranks deal in");
  }
  text += " `.` is what nobody has written yet.";
  if (!example.factors.empty()) {
    text += fmt::format(" Every rank's numbers are multiplied by its own factor first: {}.",
                        fmt::join(example.factors, ", "));
  }
  if (example.scale > 1) {
    text += fmt::format(
        " Each number stands for {} equal ones: a unit is at least a cache line, so that no two ranks write to one.",
        example.scale);
  }
  return text;
}

/// The kind of a step: whether what it touches is the rank's own, and how much of it.
std::string kind_of(const Told& told) {
  const Step& step = told.step;
  if (step.verb != Verb::move) {
    return fmt::format("{} {} {}", step.verb == Verb::signal ? "signal" : "wait", step.ranks.n,
                       step.read.is_empty() ? "" : "read") +
           (step.write.is_empty() ? "" : "write");
  }
  std::map<std::string, int> operands;
  const auto add = [&](const char* side, const Operand& operand) {
    const bool is_mine = operand.space != Space::channel && operand.ranks == only(told.rank);
    operands[fmt::format("{}{}{}", side, static_cast<int>(operand.space), is_mine ? "mine" : "")] += operand.ranks.n;
  };
  for (const Operand& operand : step.destinations) add("to", operand);
  for (const Operand& operand : step.sources) add("from", operand);
  return fmt::format("move {}", operands);
}

/// Ranks with steps of the same kinds play the same part, though perhaps in another order.
std::vector<std::string> part_of(const std::vector<Told>& steps) {
  std::vector<std::string> kinds;
  for (const Told& told : steps) kinds.push_back(kind_of(told));
  std::ranges::sort(kinds);
  return kinds;
}

std::string program_text(const Words& words, const std::vector<Told>& steps) {
  std::string text;
  std::vector<Told> before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    constexpr std::size_t kIndent = 8;
    std::string sentence = words.sentence(steps[i], before);
    const std::string sum = words.arithmetic(steps[i]);
    const bool fits = kIndent + sentence.size() + 2 + sum.size() <= kPageWidth;
    if (!sum.empty() && fits) sentence += ": " + sum;
    text += fmt::format("  {:>4}  {}", i + 1, wrapped(sentence, kIndent, kPageWidth - kIndent));
    if (!sum.empty() && !fits) text += fmt::format("{:{}}{}", "", kIndent, wrapped(sum, kIndent, kPageWidth - kIndent));
    before.push_back(steps[i]);
  }
  return text.empty() ? "        nothing: it is alone\n" : text;
}

std::string programs_text(const Words& words, const Replay& replay, int root) {
  using Part = std::pair<std::vector<std::string>, std::vector<int>>;
  std::vector<Part> parts;
  const auto ranks = static_cast<int>(replay.steps.size());
  for (int i = 0; i < ranks; ++i) {
    const int rank = (root + i) % ranks;
    const auto part = part_of(replay.steps[static_cast<std::size_t>(rank)]);
    const auto same = std::ranges::find(parts, part, &Part::first);
    same != parts.end() ? same->second.push_back(rank) : parts.push_back({part, {rank}});
  }
  std::string text;
  for (const auto& [_, members] : parts) {
    const auto rank = static_cast<std::size_t>(members.front());
    text += fmt::format("\n  rank {}\n{}", rank, program_text(words, replay.steps[rank]));
    std::vector<int> rest(members.begin() + 1, members.end());
    if (rest.empty()) continue;
    text += fmt::format("  {} {} the same, {}.\n", rank_list(rest), rest.size() == 1 ? "does" : "do",
                        rest.size() == 1 ? "in its own place" : "each in its own place");
  }
  return text;
}

std::string rounds_text(const Words& words, const Replay& replay) {
  const std::size_t ranks = replay.steps.size();
  std::vector<std::vector<std::string>> cells(static_cast<std::size_t>(replay.rounds), std::vector<std::string>(ranks));
  std::size_t width = std::string("rank 0").size();
  std::map<std::array<bool, 3>, std::string> meanings;  // one for each form of a cell
  for (const auto& steps : replay.steps) {
    for (const Told& told : steps) {
      if (told.round == 0) continue;
      const std::string& cell = cells[static_cast<std::size_t>(told.round - 1)][static_cast<std::size_t>(told.rank)] =
          words.cell(told);
      width = std::max(width, cell.size());
      const bool takes = cell.find('>') < cell.size() && !cell.starts_with('>');
      meanings.try_emplace({takes, told.sources.size() > 1, std::ranges::count(cell, '>') > 1},
                           words.cell_meaning(told));
    }
  }
  std::string text = "\n  What travels, round by round:\n\n  round";
  for (std::size_t rank = 0; rank < ranks; ++rank)
    text += fmt::format("   {:<{}}", fmt::format("rank {}", rank), width);
  text = without_trailing_spaces(text);
  for (std::size_t round = 0; round < cells.size(); ++round) {
    std::string line = fmt::format("  {:>5}", round + 1);
    for (const std::string& cell : cells[round]) line += fmt::format("   {:<{}}", cell, width);
    text += without_trailing_spaces(std::move(line));
  }
  std::vector<std::string> legend;
  for (const auto& [_, meaning] : meanings) legend.push_back(meaning);
  return fmt::format("{}\n  {}", text, wrapped(fmt::format("{}.", fmt::join(legend, "; ")), 2, kPageWidth - 2));
}

}  // namespace

std::string introduction(const Example& example, const RealRun& run) {
  const Problem& problem = example.problem;
  std::string title = fmt::format("{} on {} rank{}, {}", to_string(problem.collective), problem.ranks,
                                  problem.ranks == 1 ? "" : "s", to_string(example.dtype));
  if (example.op != Op::none) title += fmt::format(" {}", to_string(example.op));
  if (is_rooted(problem.collective)) title += fmt::format(", root {}", problem.root);
  return fmt::format("{}\n\n  {}\nBefore\n\n{}\n  {}", title,
                     wrapped(meaning_of(problem.collective), 2, kPageWidth - 2), buffers_table(example, run.before),
                     wrapped(legend(example), 2, kPageWidth - 2));
}

std::string steps_page(const Algorithm& algorithm, const Schedule& schedule, const Example& example,
                       const Replay& replay) {
  const Words words(schedule, example);
  const bool has_rounds = replay.rounds > 0;
  std::string text = fmt::format("\nSteps of the algorithm {}\n\n  {}", algorithm.name,
                                 wrapped(fmt::format("In short: {}.", algorithm.summary), 2, kPageWidth - 2));
  text += programs_text(words, replay, schedule.problem.root);
  return has_rounds ? text + rounds_text(words, replay) : text;
}

std::string result_page(const Example& example, const RealRun& run) {
  return fmt::format("\nAfter\n\n{}", buffers_table(example, run.after));
}

std::string halves_page(const Halves& halves) {
  const auto columns = [](const RealRun& run, const char* title) {
    return Column(title, side(run.after, &Pair::output), 1, 0);
  };
  const auto given = side(halves.reduce_scatter.before, &Pair::input);
  return fmt::format(
      "\nall_reduce is reduce_scatter, then all_gather: both run on the same inputs\n\n{}\n  {} what all_reduce "
      "gave.\n",
      table({Column("input", given, 1, 0), columns(halves.reduce_scatter, "reduce_scatter gives"),
             columns(halves.all_gather, "all_gather gives")},
            given.size()),
      halves.are_equal ? "Equal, bit for bit, to" : "NOT equal to");
}

std::string barrier_page(const BarrierRun& run) {
  constexpr double kMilliseconds = 1e-6;
  constexpr double kWidth = 60;
  const std::int64_t end = std::ranges::max(run.leaves_ns);
  std::string text = fmt::format("\n{:>24}{:>14}\n", "enters", "leaves");
  for (std::size_t rank = 0; rank < run.enters_ns.size(); ++rank) {
    const auto at = [&](std::int64_t ns) {
      return static_cast<std::size_t>(kWidth * static_cast<double>(ns) /
                                      static_cast<double>(std::max<std::int64_t>(end, 1)));
    };
    const std::size_t enters = at(run.enters_ns[rank]);
    const std::size_t leaves = std::max(at(run.leaves_ns[rank]), enters + 1);
    text += fmt::format("  rank {:<2}{:>12.3f} ms{:>11.3f} ms   {}{}|\n", rank,
                        static_cast<double>(run.enters_ns[rank]) * kMilliseconds,
                        static_cast<double>(run.leaves_ns[rank]) * kMilliseconds, std::string(enters, '.'),
                        std::string(leaves - enters, '='));
  }
  return text + "\n  `.` is asleep, `=` waits in the barrier, `|` leaves it.\n";
}

}  // namespace tutti::harness
