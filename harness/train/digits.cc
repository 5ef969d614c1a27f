// SPDX-License-Identifier: Apache-2.0
#include "harness/train/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "impl/types/scramble.h"

namespace tutti::harness::train {
namespace {

struct Point {
  float x = 0;  ///< from 0 (left) to 1 (right) in the digit's box
  float y = 0;  ///< from 0 (top) to 1 (bottom)
};
using Stroke = std::vector<Point>;

/// Angles in quarters of a turn: 0 is right, 1 is down.
struct Arc {
  Point centre;
  Point radius;
  float from = 0;
  float to = 0;
};

Stroke along(const Arc& arc) {
  constexpr int kPieces = 12;
  Stroke stroke;
  for (int i = 0; i <= kPieces; ++i) {
    const float turn = arc.from + (arc.to - arc.from) * static_cast<float>(i) / kPieces;
    const float angle = turn * std::numbers::pi_v<float> / 2;
    stroke.push_back({arc.centre.x + arc.radius.x * std::cos(angle), arc.centre.y + arc.radius.y * std::sin(angle)});
  }
  return stroke;
}

std::vector<Stroke> strokes_of(unsigned digit) {
  const Point upper{0.5F, 0.27F}, lower{0.5F, 0.73F};
  switch (digit) {
    case 0:
      return {along({{0.5F, 0.5F}, {0.32F, 0.47F}, 0, 4})};
    case 1:
      return {{{0.3F, 0.22F}, {0.55F, 0.03F}, {0.55F, 0.97F}}};
    case 2:
      return {along({upper, {0.32F, 0.25F}, -2, 0.4F}), {{0.77F, 0.4F}, {0.15F, 0.96F}, {0.85F, 0.96F}}};
    case 3:
      return {along({upper, {0.28F, 0.23F}, -1.9F, 1}), along({lower, {0.33F, 0.24F}, -1, 1.9F})};
    case 4:
      return {{{0.6F, 0.03F}, {0.12F, 0.65F}, {0.9F, 0.65F}}, {{0.66F, 0.35F}, {0.66F, 0.98F}}};
    case 5:
      return {{{0.8F, 0.04F}, {0.25F, 0.04F}, {0.22F, 0.46F}}, along({{0.47F, 0.68F}, {0.32F, 0.28F}, -1.6F, 1.8F})};
    case 6:
      return {{{0.68F, 0.03F}, {0.3F, 0.4F}, {0.2F, 0.68F}}, along({{0.5F, 0.7F}, {0.3F, 0.26F}, 0, 4})};
    case 7:
      return {{{0.14F, 0.05F}, {0.86F, 0.05F}, {0.4F, 0.97F}}};
    case 8:
      return {along({upper, {0.25F, 0.22F}, 0, 4}), along({lower, {0.31F, 0.24F}, 0, 4})};
    default:
      return {along({{0.48F, 0.3F}, {0.29F, 0.26F}, 0, 4}), {{0.78F, 0.3F}, {0.74F, 0.6F}, {0.55F, 0.97F}}};
  }
}

/// Numbers drawn one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t start) : at_(start) {}
  std::uint64_t next() { return scramble(at_ += kScrambleStep); }
  /// In [low, high).
  float between(float low, float high) {
    constexpr int kBits = 24;  // of a float
    const auto share = static_cast<float>(next() >> (64 - kBits)) / static_cast<float>(1 << kBits);
    return low + (high - low) * share;
  }

 private:
  std::uint64_t at_;
};

/// Of a point to the line from `a` to `b`.
float distance(Point at, Point a, Point b) {
  const Point line{b.x - a.x, b.y - a.y}, way{at.x - a.x, at.y - a.y};
  const float length = line.x * line.x + line.y * line.y;
  const float share = length > 0 ? std::clamp((way.x * line.x + way.y * line.y) / length, 0.0F, 1.0F) : 0.0F;
  const float x = way.x - share * line.x, y = way.y - share * line.y;
  return std::sqrt(x * x + y * y);
}

void draw(std::uint64_t seed, std::size_t index, Digits& digits) {
  Draws draws(scramble(seed) ^ scramble(index + 1));
  const auto digit = static_cast<unsigned>(draws.next() % kClasses);
  const float turn = draws.between(-0.25F, 0.25F), shear = draws.between(-0.15F, 0.15F);
  const float width = draws.between(11, 15), height = draws.between(16, 20);
  const Point middle{draws.between(12, 16), draws.between(12, 16)};
  const float pen = draws.between(0.8F, 1.5F);
  constexpr float kWobble = 0.03F;
  std::vector<Stroke> strokes = strokes_of(digit);
  for (Stroke& stroke : strokes) {
    for (Point& point : stroke) {
      const float x = (point.x - 0.5F + draws.between(-kWobble, kWobble)) * width;
      const float y = (point.y - 0.5F + draws.between(-kWobble, kWobble)) * height;
      const float slanted = x + shear * y;
      point = {middle.x + slanted * std::cos(turn) - y * std::sin(turn),
               middle.y + slanted * std::sin(turn) + y * std::cos(turn)};
    }
  }
  std::array<std::uint8_t, kPixels> bytes{};
  for (std::size_t row = 0; row < kImageSide; ++row) {
    for (std::size_t column = 0; column < kImageSide; ++column) {
      const Point at{static_cast<float>(column), static_cast<float>(row)};
      float nearest = kImageSide;
      for (const Stroke& stroke : strokes) {
        for (std::size_t i = 1; i < stroke.size(); ++i) {
          nearest = std::min(nearest, distance(at, stroke[i - 1], stroke[i]));
        }
      }
      const float ink = std::clamp(pen + 0.5F - nearest, 0.0F, 1.0F) + draws.between(-0.08F, 0.08F);
      bytes[row * kImageSide + column] = static_cast<std::uint8_t>(std::clamp(ink, 0.0F, 1.0F) * 255);
    }
  }
  digits.add(bytes, static_cast<std::uint8_t>(digit));
}

}  // namespace

Digits draw_digits(std::uint64_t seed, std::size_t count) {
  Digits digits;
  digits.pixels.reserve(count * kPixels);
  for (std::size_t i = 0; i < count; ++i) draw(seed, i, digits);
  return digits;
}

}  // namespace tutti::harness::train
