// SPDX-License-Identifier: Apache-2.0
#include "harness/draw/svg.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tutti::harness::draw {
namespace {

/// At most one digit after the point: 4, 0.5.
std::string number(double value) { return fmt::format("{:g}", std::round(value * 10) / 10); }

std::string outline(const Ink& ink) {
  if (ink.stroke == "none") return "";
  std::string text = fmt::format(" stroke='{}'", ink.stroke);
  if (ink.width != 1) text += fmt::format(" stroke-width='{}'", number(ink.width));
  return ink.is_dashed ? text + " stroke-dasharray='4 3'" : text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char one : text) {
    if (one == '&')
      out += "&amp;";
    else if (one == '<')
      out += "&lt;";
    else if (one == '>')
      out += "&gt;";
    else
      out += one;
  }
  return out;
}

void Svg::box(const Box& box, const Ink& ink) {
  body_ += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'{}{}/>\n", number(box.x), number(box.y),
                       number(box.width), number(box.height), ink.fill, outline(ink),
                       ink.round > 0 ? fmt::format(" rx='{}'", number(ink.round)) : "");
}

void Svg::line(Point from, Point to, const Ink& ink) {
  body_ += fmt::format("<path d='M{} {}L{} {}'{}/>\n", number(from.x), number(from.y), number(to.x), number(to.y),
                       outline(ink));
}

void Svg::arrow(Point from, Point to, const Ink& ink) {
  constexpr double kHead = 9;
  constexpr double kHalf = 4;
  const double length = std::max(1.0, std::hypot(to.x - from.x, to.y - from.y));
  const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
  const Point neck{to.x - kHead * along.x, to.y - kHead * along.y};
  line(from, neck, ink);
  body_ += fmt::format("<path d='M{} {}L{} {}L{} {}z' fill='{}'/>\n", number(to.x), number(to.y),
                       number(neck.x - kHalf * along.y), number(neck.y + kHalf * along.x),
                       number(neck.x + kHalf * along.y), number(neck.y - kHalf * along.x), ink.stroke);
}

void Svg::text(Point at, std::string_view text, const Font& font) {
  std::string look;
  if (font.size != 12) look += fmt::format(" font-size='{}'", number(font.size));
  if (font.colour != "#222") look += fmt::format(" fill='{}'", font.colour);
  if (font.anchor != Anchor::start) look += font.anchor == Anchor::end ? " text-anchor='end'" : " text-anchor='middle'";
  if (font.is_bold) look += " font-weight='bold'";
  body_ += fmt::format("<text x='{}' y='{}'{}>{}</text>\n", number(at.x), number(at.y), look, escaped(text));
}

std::string Svg::file(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' role='img' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='DejaVu Sans,Verdana,Arial,sans-serif' font-size='12' fill='#222'>\n<title>{2}</title>\n"
      "<rect width='{0}' height='{1}' fill='#fff'/>\n{3}</svg>\n",
      number(std::ceil(width)), number(std::ceil(height)), escaped(title), body_);
}

std::string hue(int index, int count, double lightness) {
  constexpr double kBlue = 210;
  constexpr double kSaturation = 0.62;
  const double degrees = std::fmod(kBlue + 360.0 * index / count, 360.0);
  const double chroma = kSaturation * (1 - std::abs(2 * lightness - 1));
  const auto channel = [&](double shift) {
    const double place = std::fmod(shift + degrees / 30, 12);
    const double value = lightness - chroma / 2 * std::clamp(std::min(place - 3, 9 - place), -1.0, 1.0);
    return static_cast<int>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace tutti::harness::draw
