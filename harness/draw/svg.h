// SPDX-License-Identifier: Apache-2.0
// The few shapes that pictures are made of, as SVG. It needs nothing outside the file: no font, no script.
#pragma once

#include <string>
#include <string_view>

#include "harness/floors.h"

namespace tutti::harness::draw {

struct Point {
  double x = 0;
  double y = 0;
};
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};
struct Ink {
  std::string_view fill = "none";
  std::string_view stroke = "none";
  double width = 1;
  bool is_dashed = false;
  double round = 0;  ///< radius of a box's corners
};
enum class Anchor : std::uint8_t { start, middle, end };
inline constexpr std::string_view kPale = "#777";  ///< of what explains a picture

struct Font {
  double size = 12;
  std::string_view colour = "#222";
  Anchor anchor = Anchor::start;
  bool is_bold = false;
};

class Svg {
 public:
  void box(const Box& box, const Ink& ink);
  void line(Point from, Point to, const Ink& ink);
  /// A line that ends in a head.
  void arrow(Point from, Point to, const Ink& ink);
  void text(Point at, std::string_view text, const Font& font = {});
  /// The file, with a title for those who do not see it.
  [[nodiscard]] std::string file(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

/// "#rrggbb" of colour number `index` of `count` that are told apart, from dark (0) to white (1).
[[nodiscard]] std::string hue(int index, int count, double lightness);

/// `text` with &, < and > as XML wants them.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace tutti::harness::draw
