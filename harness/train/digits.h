// SPDX-License-Identifier: Apache-2.0
// The images that a training learns from: handwritten digits of 28 x 28 pixels. The generator draws them from strokes;
// an image is a pure function of the seed and its number, so every rank draws the same ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::train {

inline constexpr std::size_t kImageSide = 28;
inline constexpr std::size_t kPixels = kImageSide * kImageSide;
inline constexpr std::size_t kClasses = 10;

struct Digits {
  std::vector<std::uint8_t> pixels;  ///< [image][row][column], 0 (paper) to 255 (ink)
  std::vector<std::uint8_t> labels;  ///< [image], below kClasses

  [[nodiscard]] std::size_t count() const { return labels.size(); }
  [[nodiscard]] std::span<const std::uint8_t> image(std::size_t index) const {
    return std::span(pixels).subspan(index * kPixels, kPixels);
  }
  /// Appends an image. Shapes: bytes[kPixels].
  void add(std::span<const std::uint8_t> bytes, std::uint8_t label) {
    pixels.insert(pixels.end(), bytes.begin(), bytes.end());
    labels.push_back(label);
  }
};

/// Images [0, count) of the seed. Each has a digit, its strokes turned, sheared, scaled and shifted, a pen of its own
/// and noise.
[[nodiscard]] Digits draw_digits(std::uint64_t seed, std::size_t count);

}  // namespace tutti::harness::train
