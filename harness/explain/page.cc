// SPDX-License-Identifier: Apache-2.0
#include "harness/explain/page.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/explain/words.h"
#include "harness/text/text.h"

namespace tutti::harness::explain {
namespace {

constexpr std::string_view kUnwrittenText = ".";
constexpr std::string_view kGap = "_";
constexpr std::string_view kEmpty = "-";

std::string text_of(const std::optional<double>& number) {
  return number ? number_text(*number) : std::string(kUnwrittenText);
}

/// One unit in a column: as wide on every rank, so that units stand below each other.
struct Slot {
  int numbers = 0;       ///< the most of any rank
  bool has_gap = false;  ///< before it, on some rank
};

/// One column of buffers, all ranks' below each other: blocks are set apart, each number is as wide as the widest.
class Column {
 public:
  using Stretches = std::vector<std::vector<Stretch>>;  // [rank][unit]

  Column(std::string title, std::vector<Numbers> numbers, Stretches places, int units_per_block, bool has_letters)
      : title_(std::move(title)),
        numbers_(std::move(numbers)),
        places_(std::move(places)),
        units_per_block_(static_cast<std::size_t>(units_per_block)),
        has_letters_(has_letters) {
    for (const Numbers& rank : numbers_) {
      for (const auto& number : rank) cell_ = std::max(cell_, text_of(number).size());
    }
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      slots_.resize(std::max(slots_.size(), places_[rank].size()));
      for (std::size_t unit = 0; unit < places_[rank].size(); ++unit) {
        slots_[unit].numbers = std::max({1, slots_[unit].numbers, places_[rank][unit].count});
        slots_[unit].has_gap |= has_gap(rank, unit);
      }
    }
    for (const Slot& slot : slots_) is_divided_ |= slot.numbers > 1;
    is_divided_ |= units_per_block_ > 1;
    width_ = std::max({title_.size(), kNone.size(), letters_text().size()});
    for (std::size_t rank = 0; rank < numbers_.size(); ++rank) width_ = std::max(width_, numbers_text(rank).size());
  }

  [[nodiscard]] std::string title() const { return fmt::format("{:<{}}", title_, width_); }
  /// The letters above the numbers, where there is more than one unit.
  [[nodiscard]] std::string letters() const { return fmt::format("{:<{}}", letters_text(), width_); }
  [[nodiscard]] std::string line(std::size_t rank) const {
    return fmt::format("{:<{}}", places_[rank].empty() ? kNone : numbers_text(rank), width_);
  }

 private:
  static constexpr std::string_view kNone = "(none)";

  [[nodiscard]] bool has_gap(std::size_t rank, std::size_t unit) const {
    const int end = unit == 0 ? 0 : places_[rank][unit - 1].first + places_[rank][unit - 1].count;
    return places_[rank][unit].first > end;
  }
  [[nodiscard]] std::string letters_text() const {
    return laid_out([this](std::size_t unit, int i) {
      return has_letters_ && i == 0 ? letter(static_cast<int>(unit)) : std::string();
    });
  }
  [[nodiscard]] std::string numbers_text(std::size_t rank) const {
    return laid_out([this, rank](std::size_t unit, int i) -> std::string {
      if (unit >= places_[rank].size()) return "";
      const Stretch place = places_[rank][unit];
      if (i < 0) return has_gap(rank, unit) ? std::string(kGap) : "";
      if (place.count == 0) return i == 0 ? std::string(kEmpty) : "";
      return i < place.count ? text_of(numbers_[rank][static_cast<std::size_t>(place.first + i)]) : "";
    });
  }
  /// `text(unit, i)` of each number of each unit; i is -1 for the gap before it.
  template <class Text>
  [[nodiscard]] std::string laid_out(Text text) const {
    std::string line;
    for (std::size_t unit = 0; unit < slots_.size(); ++unit) {
      const bool is_new_block = unit > 0 && unit % units_per_block_ == 0 && is_divided_;
      for (int i = slots_[unit].has_gap ? -1 : 0; i < slots_[unit].numbers; ++i) {
        const bool is_first = i <= 0 && (i < 0 || !slots_[unit].has_gap);
        const std::string_view space = line.empty() ? "" : is_first && is_new_block ? "  " : " ";
        line += fmt::format("{}{:>{}}", space, text(unit, i), cell_);
      }
    }
    return line;
  }

  std::string title_;
  std::vector<Numbers> numbers_;  // [rank]
  Stretches places_;
  std::size_t units_per_block_;
  bool has_letters_;
  std::vector<Slot> slots_;  // [unit]
  bool is_divided_ = false;  // blocks have several numbers: they are set apart
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
  const auto column = [&](const char* title, BufferSide which, Numbers Pair::*numbers) {
    Column::Stretches places(pairs.size());
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
      const auto number = static_cast<int>(rank);
      for (int unit = 0; unit < example.units_in(which, number); ++unit) {
        places[rank].push_back(example.place(which, number, unit));
      }
      most = std::max(most, places[rank].size());
    }
    const bool is_larger = static_cast<int>(most) == units_of(example);
    return Column(title, side(pairs, numbers), std::move(places), example.units, is_larger);
  };
  const Column input = column("input", BufferSide::input, &Pair::input);
  const Column output = column("output", BufferSide::output, &Pair::output);
  std::string beside = table({input, output}, pairs.size());
  std::istringstream lines(beside);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kPageWidth) return table({input}, pairs.size()) + "\n" + table({output}, pairs.size());
  }
  return beside;
}

/// Lists of numbers, one beside the other: no blocks.
Column list_column(const char* title, std::vector<Numbers> numbers) {
  Column::Stretches places(numbers.size());
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    for (int i = 0; i < static_cast<int>(numbers[rank].size()); ++i) places[rank].push_back({.first = i, .count = 1});
  }
  return {title, std::move(numbers), std::move(places), 1, false};
}

/// What the marks in a table of buffers mean, as far as they appear.
std::string legend(const Example& example) {
  const bool is_block = example.units == 1;
  std::string text = "`a` is the whole list.";
  if (units_of(example) > 1) {
    text = fmt::format("The letters name the {}s{}.", is_block ? "block" : "unit",
                       !is_block                                ? ", the parts that ranks deal in"
                       : has_window(example.problem.collective) ? ", one for each message"
                                                                : ", one for each rank");
  }
  text += " `.` is what no rank has written yet.";
  if (!example.lengths.empty()) {
    text += fmt::format(" `{}` is a block without numbers, `{}` a gap between blocks: no rank reads or writes there.",
                        kEmpty, kGap);
    text += divides_both(example.problem.collective)
                ? fmt::format(" Rank i gives rank j as many numbers as number (i + j) mod {} of {} says.",
                              example.problem.ranks, fmt::join(example.lengths, ", "))
                : fmt::format(" The blocks have {} numbers.", fmt::join(example.lengths, ", "));
  }
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
    return list_column(title, side(run.after, &Pair::output));
  };
  const auto given = side(halves.reduce_scatter.before, &Pair::input);
  return fmt::format(
      "\nall_reduce is reduce_scatter, then all_gather: both run on the same inputs\n\n{}\n  {} what all_reduce "
      "gave.\n",
      table({list_column("input", given), columns(halves.reduce_scatter, "reduce_scatter gives"),
             columns(halves.all_gather, "all_gather gives")},
            given.size()),
      halves.are_equal ? "Equal, bit for bit, to" : "NOT equal to");
}

std::string barrier_page(const BarrierRun& run) {
  constexpr double kMilliseconds = 1e-6;
  constexpr double kWidth = 60;
  constexpr std::int64_t kLeastNs = 1'000'000;  // what a rank alone takes is not worth a picture
  const std::int64_t end = std::max(kLeastNs, std::ranges::max(run.leaves_ns));
  std::string text = fmt::format("\n{:>24}{:>14}\n", "enters", "leaves");
  for (std::size_t rank = 0; rank < run.enters_ns.size(); ++rank) {
    const auto at = [&](std::int64_t ns) {
      return static_cast<std::size_t>(kWidth * static_cast<double>(ns) / static_cast<double>(end));
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

}  // namespace tutti::harness::explain
