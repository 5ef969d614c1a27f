// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/space_time.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "harness/draw/names.h"
#include "harness/draw/places.h"
#include "harness/draw/svg.h"

namespace tutti::harness::draw {
namespace {

constexpr double kTop = 92;
constexpr double kLeft = 76;
constexpr double kBoxHeight = 20;
constexpr int kMostAbreast = 8;         ///< boxes; more go below each other
constexpr std::size_t kMostLabel = 16;  ///< characters on an arrow
constexpr double kHostGap = 26;
constexpr double kLongestBuffer = 200;  ///< the longest buffer, of blocks with lengths

double text_width(std::string_view text, double size) { return 0.62 * size * static_cast<double>(width_of(text)); }

class Picture {
 public:
  Picture(const Story& story, const Lengths& lengths)
      : story_(story), lengths_(lengths), ranks_(story.problem.ranks), places_(story.problem) {
    std::size_t most = 1;
    for (const Parts& parts : story.given) most = std::max(most, parts.size());
    for (const Parts& parts : story.held.front()) most = std::max(most, parts.size());
    boxes_ = static_cast<int>(most);
    abreast_ = std::min(boxes_, kMostAbreast);
    const int rows = lengths.is_empty() ? (boxes_ + kMostAbreast - 1) / kMostAbreast : 1;
    height_ = rows * kBoxHeight;
    double label = 24;
    for (const Transfer& one : story.transfers) {
      label = std::max(label, text_width(label_of(one.parts), 11) + 10);
      if (!lengths.is_empty()) longest_sent_ = std::max(longest_sent_, lengths.of(one.parts));
    }
    box_width_ = std::max(boxes_ > kMostAbreast ? 16.0 : 20.0, widest_held());
    width_ = lengths.is_empty() ? abreast_ * box_width_ : kLongestBuffer;
    column_ = width_ + std::max(has_memory() ? 104.0 : 84.0, label + 34);
    row_ = std::max(60.0, height_ + 34 + (story.in_hand.empty() ? 0 : 8));
  }

  std::string draw(std::string_view title, std::string_view idea) {
    places();
    headings(title, idea);
    mutual_waits();
    for (const Transfer& one : story_.transfers) arrow(one);
    for (const Transfer& one : story_.transfers) {
      if (has_label(one)) label(one);
    }
    for (int rank = 0; rank < ranks_; ++rank) boxes(rank);
    for (const InHand& one : story_.in_hand) in_hand(one);
    const double below = explain();
    const double width =
        std::max({640.0, x(story_.rounds) + width_ + 44, text_width(title, 17) + 40, text_width(idea, 12) + 40});
    return svg_.file(width, below, fmt::format("{}: {}", title, idea));
  }

 private:
  [[nodiscard]] bool has_memory() const {
    return std::ranges::any_of(story_.transfers, [](const Transfer& one) {
      return one.kind == TransferKind::read || one.kind == TransferKind::store;
    });
  }
  [[nodiscard]] double x(int round) const { return kLeft + round * column_; }
  [[nodiscard]] double y(int rank) const { return kTop + rank * row_ + places_.of(rank) * kHostGap; }
  [[nodiscard]] double bottom() const { return y(ranks_ - 1) + row_ - 18; }
  [[nodiscard]] std::string label_of(const Parts& parts) const {
    const std::string names = names_of(story_, parts, Script::picture, kMostLabel);
    return lengths_.is_empty() ? names : fmt::format("{}: {}", names, lengths_.of(parts));
  }
  /// Room for the names in boxes, unless they would make the picture too wide.
  [[nodiscard]] double widest_held() const {
    constexpr double kMostWidth = 58;
    double widest = 0;
    for (const auto& ranks : story_.held) {
      for (const Parts& parts : ranks) {
        for (const Part& part : parts)
          widest = std::max(widest, text_width(name_of(story_, part, Script::picture), 11) + 6);
      }
    }
    for (const Parts& parts : story_.given) {
      for (const Part& part : parts)
        widest = std::max(widest, text_width(given_name(story_, part, Script::picture), 11) + 6);
    }
    return std::min(widest, boxes_ <= 4 ? kMostWidth : boxes_ <= kMostAbreast ? 34.0 : 22.0);
  }

  void places() {
    if (places_.size == 0) return;
    const double width = x(story_.rounds) + width_ + 34;
    for (int place = 0; place < places_.count; ++place) {
      const double top = y(place * places_.size) - 20;
      const int last = std::min(ranks_, (place + 1) * places_.size) - 1;
      svg_.box({6, top, width - 6, y(last) + row_ - 20 - top}, {.fill = "#f6f6f2", .stroke = "#ddd", .round = 6});
      svg_.text({12, top + 13}, fmt::format("{} {}", places_.name, place), {.size = 11, .colour = kPale});
    }
  }

  [[nodiscard]] std::string heading(int round) const {
    bool reads = false;
    bool stores = false;
    bool sends = false;
    for (const Transfer& one : story_.transfers) {
      if (one.sent > round || one.received <= round) continue;
      (one.kind == TransferKind::read ? reads : one.kind == TransferKind::store ? stores : sends) = true;
    }
    const std::string number = fmt::format("round {}", round + 1);
    if (sends || reads == stores) return number;
    return fmt::format("{}: {}", number, reads ? "read" : "store");
  }

  void headings(std::string_view title, std::string_view idea) {
    svg_.text({16, 26}, title, {.size = 17, .is_bold = true});
    svg_.text({16, 46}, idea, {.colour = "#555"});
    const Font small{.size = 11, .colour = kPale, .anchor = Anchor::middle};
    const double half = width_ / 2;
    const bool has_buffers = has_data(story_.problem.collective);
    svg_.text({x(0) + half, 68}, has_buffers ? "input" : "enters", small);
    for (int round = 0; round < story_.rounds; ++round) {
      svg_.text({(x(round) + 2 * half + x(round + 1)) / 2, 68}, heading(round), small);
      svg_.line({x(round + 1) - 8, 58}, {x(round + 1) - 8, bottom()}, {.stroke = "#e8e8e8"});
    }
    svg_.text({x(story_.rounds) + half, 68}, story_.rounds == 0 ? "" : has_buffers ? "output" : "leaves", small);
  }

  void mutual_waits() {
    for (const MutualWait& one : story_.mutual_waits) {
      const double at = x(one.round) + width_ + 9;
      svg_.line({at, y(one.first) - 6}, {at, y(one.last) + height_ + 10}, {.stroke = "#bbb", .width = 4});
      svg_.text({at, y(one.last) + height_ + 20}, "all wait", {.size = 9, .colour = kPale, .anchor = Anchor::middle});
    }
  }

  [[nodiscard]] std::pair<Point, Point> ends(const Transfer& one) const {
    return {{x(one.sent) + width_ + 4, y(one.from) + 8}, {x(one.received) - 5, y(one.to) + 8}};
  }
  [[nodiscard]] Part colour_part(const Parts& parts) const {
    return parts.empty() ? Part{.unit = 0, .ranks = 1} : parts.front();
  }

  void arrow(const Transfer& one) {
    const auto [from, to] = ends(one);
    const bool is_message = one.kind == TransferKind::message || one.kind == TransferKind::flag;
    svg_.arrow(from, to,
               {.stroke = colour_of(story_, colour_part(one.parts), 0.42),
                .width = arrow_width(one.parts),
                .is_dashed = !is_message});
  }
  [[nodiscard]] double arrow_width(const Parts& parts) const {
    constexpr double kThinnest = 0.7, kThickest = 5;
    if (lengths_.is_empty()) return 1.8;
    const double share = static_cast<double>(lengths_.of(parts)) / static_cast<double>(longest_sent_);
    return kThinnest + (kThickest - kThinnest) * share;
  }

  /// Of many reads or stores alike one has a label.
  [[nodiscard]] bool has_label(const Transfer& one) const {
    constexpr int kFew = 3;
    if (one.parts.empty()) return false;
    if (one.kind == TransferKind::message || one.kind == TransferKind::flag || ranks_ <= kFew) return true;
    const auto same = [&](const Transfer& other) {
      const bool is_same_actor = one.kind == TransferKind::read ? other.to == one.to : other.from == one.from;
      return other.kind == one.kind && other.sent == one.sent && is_same_actor;
    };
    const auto nearness = [](const Transfer& other) {
      return std::abs(other.to - other.from) * 2 + (other.to < other.from ? 1 : 0);
    };
    return std::ranges::none_of(story_.transfers,
                                [&](const Transfer& other) { return same(other) && nearness(other) < nearness(one); });
  }

  void label(const Transfer& one) {
    const auto [from, to] = ends(one);
    const std::string text = label_of(one.parts);
    const double width = text_width(text, 11) + 8;
    // Near the sender; of a steep arrow upwards below the row of the receiver, since its foot lies on others.
    constexpr double kBelowRow = 30;
    const double near = std::min(0.46, (width / 2 + 6) / (to.x - from.x));
    const double at = one.from - one.to > 1 ? 1 - kBelowRow / (from.y - to.y) : near;
    const Point centre{std::min(from.x + (to.x - from.x) * at, to.x - width / 2), from.y + (to.y - from.y) * at};
    const Part part = colour_part(one.parts);
    svg_.box({centre.x - width / 2, centre.y - 8, width, 16},
             {.fill = colour_of(story_, part, 0.93), .stroke = colour_of(story_, part, 0.55), .round = 4});
    svg_.text({centre.x, centre.y + 4}, text, {.size = 11, .anchor = Anchor::middle});
  }

  [[nodiscard]] Box place(int round, int rank, std::size_t unit) const {
    if (!lengths_.is_empty()) {
      const std::vector<Count>& units = round == 0 ? lengths_.given(rank) : lengths_.held(rank);
      Count before = 0;
      for (std::size_t i = 0; i < unit; ++i) before += units[i];
      const double scale = width_ / static_cast<double>(lengths_.longest());
      const double width = units[unit] > 0 ? std::max(1.0, static_cast<double>(units[unit]) * scale) : 0;
      return {x(round) + static_cast<double>(before) * scale, y(rank) - 2, width, kBoxHeight};
    }
    const auto column = static_cast<int>(unit) % abreast_;
    const auto line = static_cast<int>(unit) / abreast_;
    return {x(round) + column * box_width_, y(rank) - 2 + line * kBoxHeight, box_width_, kBoxHeight};
  }
  /// Without room for its ranks a sum has dots in their place.
  void name(const Box& box, std::string text, std::string_view colour) {
    const auto size_of = [&] { return text_width(text, 11) + 3 <= box.width ? 11.0 : 9.0; };
    if (const std::size_t ranks = text.find(' '); ranks != text.npos && text_width(text, size_of()) > box.width) {
      text = text.substr(0, ranks) + "\u2026";
      has_dots_ = true;
    }
    if (text.empty() || text_width(text, size_of()) > box.width) return;
    svg_.text({box.x + box.width / 2, box.y + 14}, text,
              {.size = size_of(), .colour = colour, .anchor = Anchor::middle});
  }

  /// A block without elements is an upright line.
  bool is_a_line(const Box& box, std::string_view colour) {
    if (box.width > 0) return false;
    svg_.line({box.x, box.y - 2}, {box.x, box.y + box.height + 2}, {.stroke = colour, .width = 2});
    return true;
  }

  void boxes(int rank) {
    svg_.text({14, y(rank) + 13}, fmt::format("rank {}", rank), {.is_bold = true});
    const Parts& given = story_.given[static_cast<std::size_t>(rank)];
    for (std::size_t unit = 0; unit < given.size(); ++unit) {
      const Box box = place(0, rank, unit);
      if (is_a_line(box, "#999")) continue;
      svg_.box(box, {.fill = colour_of(story_, given[unit], 0.95), .stroke = "#999", .is_dashed = true});
      name(box, given_name(story_, given[unit], Script::picture), "#444");
    }
    for (int round = 1; round <= story_.rounds; ++round) {
      const Parts& held = story_.held_by(rank, round);
      for (std::size_t unit = 0; unit < held.size(); ++unit) {
        const Box box = place(round, rank, unit);
        if (is_a_line(box, "#444")) continue;
        const Part& part = held[unit];
        const bool is_right = is_done(story_, rank, static_cast<int>(unit), part);
        const double share = std::popcount(part.ranks) / static_cast<double>(ranks_);
        const double lightness = is_right ? 0.70 : 0.95 - 0.15 * share;
        svg_.box(box, {.fill = part.is_empty() ? "#fff" : std::string_view(colour_of(story_, part, lightness)),
                       .stroke = is_right ? "#444" : "#aaa"});
        name(box, name_of(story_, part, Script::picture), "#222");
      }
    }
  }

  void in_hand(const InHand& one) {
    const std::string text = "adds up " + label_of(one.parts);
    svg_.text({x(one.round), y(one.rank) + height_ + 10}, text,
              {.size = 10, .colour = colour_of(story_, colour_part(one.parts), 0.32)});
  }

  /// What signs mean that a newcomer may not guess; the height of the picture.
  double explain() {
    std::vector<std::string> lines;
    const Collective collective = story_.problem.collective;
    if (!has_data(collective)) {
      lines.push_back("In a box: the ranks that this rank knows to have entered. A rank leaves once it knows of all.");
    } else {
      lines.push_back("Boxes: a rank's input, then its output as it fills up; dark: finished, white: nothing yet.");
    }
    if (is_reducing(collective)) {
      const bool has_units = colours_of(story_) > 1;
      std::string text =
          has_units ? "b 0+1: part b of rank 0 and of rank 1, added up." : "0+1: what ranks 0 and 1 gave, added up.";
      if (has_dots_) text += " b\u2026: of more ranks than there is room for.";
      if (!is_prefix(collective)) text += has_units ? " \u03a3b: of all ranks." : " \u03a3: of all ranks.";
      lines.push_back(text);
    }
    if (!lengths_.is_empty()) {
      std::string text = "A box is as long as its block. On an arrow: how many elements it carries.";
      if (lengths_.has_empty()) text += " An upright line: a block without elements.";
      lines.push_back(text);
    }
    const auto has = [&](TransferKind kind) {
      return std::ranges::any_of(story_.transfers, [&](const Transfer& one) { return one.kind == kind; });
    };
    if (has(TransferKind::read) || has(TransferKind::store)) {
      lines.push_back(
          fmt::format("Dashed arrow, the way that data go: memory of another rank that is {} without a message.",
                      has(TransferKind::read) ? has(TransferKind::store) ? "read or stored to" : "read" : "stored to"));
    }
    if (std::ranges::any_of(story_.transfers,
                            [&](const Transfer& one) { return !one.parts.empty() && !has_label(one); })) {
      lines.push_back("Of arrows alike the shortest one says what it carries.");
    }
    double at = bottom() + 24;
    for (const std::string& line : lines) {
      svg_.text({16, at}, line, {.size = 11, .colour = "#555"});
      at += 16;
    }
    return at;
  }

  const Story& story_;
  const Lengths& lengths_;
  int ranks_;
  bool has_dots_ = false;  ///< some box has no room for the ranks of its sum
  Places places_;
  int boxes_ = 1;
  int abreast_ = 1;
  double box_width_ = 20;
  double width_ = 20;   ///< of the widest row of boxes
  double height_ = 20;  ///< of a rank's boxes
  Count longest_sent_ = 1;
  double column_ = 100;
  double row_ = 60;
  Svg svg_;
};

}  // namespace

std::string space_time_svg(const Story& story, std::string_view title, std::string_view idea, const Lengths& lengths) {
  return Picture(story, lengths).draw(title, idea);
}

}  // namespace tutti::harness::draw
