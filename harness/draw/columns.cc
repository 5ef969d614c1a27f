// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "harness/draw/names.h"
#include "harness/draw/places.h"
#include "harness/text/text.h"

namespace tutti::harness::draw {
namespace {

constexpr std::size_t kMostHeld = 46;  ///< characters; of wider outputs each unit is one character
constexpr std::size_t kMostNames = 18;
constexpr Count kLongestText = 24;  ///< characters of the longest buffer, of blocks with lengths

/// "a:0,1>2 b>3", "a<0-2".
struct Action {
  std::string what;
  char sign;
  RankBits ranks;
};

class Columns {
 public:
  Columns(const Story& story, const Lengths& lengths)
      : story_(story), lengths_(lengths), ranks_(static_cast<std::size_t>(story.problem.ranks)) {
    const auto columns = static_cast<std::size_t>(story.rounds) + 1;
    held_.assign(columns, std::vector<std::string>(ranks_));
    done_.assign(columns, std::vector<std::string>(ranks_));
    for (std::size_t round = 0; round < columns; ++round) {
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        held_[round][rank] = held(static_cast<int>(rank), static_cast<int>(round));
        done_[round][rank] = actions(static_cast<int>(rank), static_cast<int>(round));
      }
    }
  }

  [[nodiscard]] std::string bands() const {
    const auto columns = held_.size();
    constexpr std::size_t kGap = 2;
    std::vector<std::size_t> widths;
    for (std::size_t round = 0; round < columns; ++round) {
      std::size_t width = heading(round).size();
      for (std::size_t rank = 0; rank < ranks_; ++rank)
        width = std::max({width, held_[round][rank].size(), done_[round][rank].size()});
      widths.push_back(width + kGap);
    }
    std::string text;
    for (std::size_t begin = 0; begin < columns;) {
      std::size_t end = begin + 1;
      std::size_t used = kIndent + widths[begin];
      while (end < columns && used + widths[end] - kGap <= kTerminal) used += widths[end++];
      text += "\n" + band(begin, end, widths);
      begin = end;
    }
    return text;
  }

  /// What the signs mean that there are, by an example from the picture.
  [[nodiscard]] std::string key() const {
    std::vector<std::string> words;
    const Collective collective = story_.problem.collective;
    if (!has_data(collective)) {
      words.emplace_back("A rank's line: which ranks it knows to have entered. `0,1>2` tells rank 2 so of 0 and 1.");
      return fmt::format("{}\n", wrapped(words.front(), 0, kTerminal));
    }
    std::string first = "A rank's first line: its output, `.` is empty";
    first += is_narrow_ && is_reducing(collective) ? ", `+` not complete." : ".";
    words.push_back(first);
    if (!lengths_.is_empty()) words.push_back(scale_text());
    std::vector<std::string> clauses;
    for (const auto& [sign, action] : examples_) clauses.push_back(meaning_of(action));
    if (!clauses.empty()) words.push_back(fmt::format("{}.", fmt::join(clauses, "; ")));
    if (is_reducing(collective)) {
      words.emplace_back(colours_of(story_) > 1 ? "`b:0,1` is part b added up over ranks 0 and 1."
                                                : "`0,1` is the sum of ranks 0 and 1.");
      if (!is_prefix(collective))
        words.emplace_back(colours_of(story_) > 1 ? "`b*` is over all ranks." : "`all` is over all ranks.");
    }
    return wrapped(fmt::format("{}", fmt::join(words, " ")), 0, kTerminal);
  }

 private:
  static constexpr std::size_t kIndent = 9;

  /// With lengths: the characters of a unit of so many elements.
  [[nodiscard]] std::size_t characters(Count elements) const {
    return static_cast<std::size_t>(std::max(
        1.0, std::round(static_cast<double>(elements * kLongestText) / static_cast<double>(lengths_.longest()))));
  }
  [[nodiscard]] std::string scale_text() const {
    const double elements = static_cast<double>(lengths_.longest()) / static_cast<double>(kLongestText);
    const std::string text = fmt::format("A character is about {:.3g} elements; a shorter block has one", elements);
    return text + (lengths_.has_empty() ? ", and `0` is an empty block." : ".");
  }

  [[nodiscard]] bool is_narrow() const {
    if (!lengths_.is_empty()) return true;
    for (const auto& ranks : story_.held) {
      for (const Parts& parts : ranks) {
        if (wide(parts).size() > kMostHeld) return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::string wide(const Parts& parts) const {
    std::string text;
    bool was_dot = false;
    for (const Part& part : parts) {
      const std::string name = part.is_empty() ? "." : name_of(story_, part, Script::plain);
      const bool is_dot = name == ".";
      text += (text.empty() || (is_dot && was_dot) ? "" : " ") + name;
      was_dot = is_dot;
    }
    return text;
  }

  [[nodiscard]] static std::string text_of(const Action& action, const std::string& ranks) {
    return fmt::format("{}{}{}", action.what, action.sign, ranks);
  }

  /// "`a:0>1` sends a:0 to rank 1".
  [[nodiscard]] static std::string meaning_of(const Action& action) {
    const std::string ranks = ranks_text(action.ranks);
    const std::string of_whom = (std::popcount(action.ranks) > 1 ? "ranks " : "rank ") + ranks;
    const std::string what = action.what.empty() ? "the input" : action.what;
    const std::string text = text_of(action, ranks);
    if (action.sign == '>') return fmt::format("`{}` sends {} to {}", text, what, of_whom);
    if (action.sign == '<') return fmt::format("`{}` reads {} in the memory of {}", text, what, of_whom);
    return fmt::format("`{}` stores {} in the memory of {}", text, what, of_whom);
  }

  [[nodiscard]] std::string held(int rank, int round) const {
    const Parts& parts = story_.held_by(rank, round);
    if (!is_narrow_) return wide(parts);
    std::string text;
    for (std::size_t unit = 0; unit < parts.size(); ++unit) {
      const Part& part = parts[unit];
      const char sign = part.is_empty() ? '.'
                        : is_done(story_, rank, static_cast<int>(unit), part)
                            ? name_of(story_, part, Script::plain).front()
                            : '+';
      if (lengths_.is_empty()) {
        text += sign;
        continue;
      }
      const Count elements = lengths_.held(rank)[unit];
      if (unit > 0) text += ' ';
      text += elements > 0 ? std::string(characters(elements), sign) : "0";
    }
    return text;
  }

  /// What the rank does in the round after `round`.
  [[nodiscard]] std::string actions(int rank, int round) {
    std::vector<Action> list;
    for (const Transfer& one : story_.transfers) {
      const bool is_read = one.kind == TransferKind::read;
      if (one.sent != round || (is_read ? one.to : one.from) != rank) continue;
      Action action{names_of(story_, one.parts, Script::plain, kMostNames),
                    is_read                           ? '<'
                    : one.kind == TransferKind::store ? '='
                                                      : '>',
                    bit_of(is_read ? one.from : one.to)};
      if (is_read) action.what = units_of(one.parts, action.what);
      const auto same = std::ranges::find_if(
          list, [&](const Action& other) { return other.what == action.what && other.sign == action.sign; });
      if (same == list.end())
        list.push_back(action);
      else
        same->ranks |= action.ranks;
    }
    std::string text;
    for (const Action& action : list) {
      const auto all = static_cast<RankBits>((std::uint64_t{1} << ranks_) - 1);
      const bool is_all = ranks_ > 2 && (action.ranks | bit_of(rank)) == all;
      const std::string one = text_of(action, is_all ? "all" : ranks_text(action.ranks));
      text += (text.empty() ? "" : " ") + one;
      examples_.try_emplace(action.sign, action);
    }
    return text;
  }

  /// A read of inputs that are added up is named by the unit: the ranks stand behind it.
  [[nodiscard]] std::string units_of(const Parts& parts, const std::string& names) const {
    if (!is_reducing(story_.problem.collective)) return names;
    if (colours_of(story_) == 1) return "";
    constexpr std::size_t kFew = 3;
    if (parts.size() > kFew) return letter(parts.front().unit) + "-" + letter(parts.back().unit);
    std::string text;
    for (const Part& part : parts) text += letter(part.unit);
    return text;
  }

  [[nodiscard]] std::string heading(std::size_t round) const {
    if (round == 0) return "start";
    return round + 1 == held_.size() ? "end" : fmt::format("round {}", round);
  }

  [[nodiscard]] std::string band(std::size_t begin, std::size_t end, const std::vector<std::size_t>& widths) const {
    const auto line = [&](const std::string& name, const auto& of) {
      std::string text = fmt::format("{:<{}}", name, kIndent);
      for (std::size_t round = begin; round < end; ++round) text += fmt::format("{:<{}}", of(round), widths[round]);
      text.erase(text.find_last_not_of(' ') + 1);
      return text + "\n";
    };
    std::string text = line("", [&](std::size_t round) { return heading(round); });
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Places places(story_.problem);
      const int place = places.of(static_cast<int>(rank));
      if (places.size > 0 && static_cast<int>(rank) == place * places.size) {
        text += fmt::format("{} {}\n", places.name, place);
      }
      text += line(fmt::format("rank {}", rank), [&](std::size_t round) { return held_[round][rank]; });
      const std::string does = line("", [&](std::size_t round) { return done_[round][rank]; });
      if (does.size() > 1) text += does;
    }
    return text;
  }

  const Story& story_;
  const Lengths& lengths_;
  std::size_t ranks_;
  bool is_narrow_ = is_narrow();
  std::vector<std::vector<std::string>> held_;  ///< [round][rank]
  std::vector<std::vector<std::string>> done_;
  std::map<char, Action> examples_;  ///< the first of each sign
};

}  // namespace

std::string columns_text(const Story& story, const Lengths& lengths) {
  const Columns columns(story, lengths);
  return fmt::format("{}\n{}", columns.bands(), columns.key());
}

}  // namespace tutti::harness::draw
