// SPDX-License-Identifier: Apache-2.0
// The network's gradients are those of its loss, and its digits can be told apart.
#include "harness/train/network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

namespace tutti::harness::train {
namespace {

std::vector<std::uint32_t> first_of(std::size_t count) {
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0U);
  return indices;
}

/// Of a tensor, the elements with the largest gradients: a finite difference of float has an error of its own.
std::vector<std::size_t> steepest(const Tensor& tensor, const std::vector<float>& gradients, std::size_t count) {
  std::vector<std::size_t> all(tensor.count);
  std::iota(all.begin(), all.end(), tensor.first);
  std::ranges::sort(all, std::greater(), [&](std::size_t i) { return std::abs(gradients[i]); });
  all.resize(std::min(count, all.size()));
  return all;
}

// A pool or relu that switches within a step bends the loss. So most elements of each tensor must be near, not all.
TEST(Network, GradientsAreThoseOfFiniteDifferences) {
  const Digits digits = draw_digits(3, 4);
  const auto indices = first_of(4);
  const Batch batch{.digits = digits, .indices = indices};
  std::vector<float> parameters = first_parameters(3), gradients(kParameters);
  Network network;
  network.forward(parameters, batch);
  ASSERT_TRUE(network.backward(parameters, gradients).is_ok());
  constexpr float kStep = 2e-3F;
  for (const Tensor& tensor : kTensors) {
    std::size_t near = 0;
    const auto tried = steepest(tensor, gradients, 10);
    for (const std::size_t i : tried) {
      const float kept = parameters[i];
      parameters[i] = kept + kStep;
      const double above = network.forward(parameters, batch);
      parameters[i] = kept - kStep;
      const double below = network.forward(parameters, batch);
      parameters[i] = kept;
      const double slope = (above - below) / (2 * static_cast<double>(kStep));
      near += std::abs(slope - static_cast<double>(gradients[i])) < 0.1 * std::abs(slope) ? 1U : 0U;
    }
    EXPECT_GE(near * 10, tried.size() * 8) << tensor.name << ": " << near << " of " << tried.size();
  }
}

TEST(Network, FillsGradientsFromTheFirstOn) {
  const Digits digits = draw_digits(3, 2);
  const auto indices = first_of(2);
  std::vector<float> gradients(kParameters);
  const std::vector<float> parameters = first_parameters(3);
  Network network;
  network.forward(parameters, {.digits = digits, .indices = indices});
  std::vector<std::vector<float>> seen;
  std::vector<std::size_t> counts;
  const auto note = [&](std::size_t count) {
    counts.push_back(count);
    seen.emplace_back(gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(count));
    return Status();
  };
  ASSERT_TRUE(network.backward(parameters, gradients, {.on_filled = note, .on_pause = {}}).is_ok());
  EXPECT_EQ(counts, (std::vector<std::size_t>{510, 16560, 21580, kParameters}));
  for (const auto& prefix : seen) EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), gradients.begin()));
}

TEST(Network, LearnsDigitsThatItHasNotSeen) {
  const Digits digits = draw_digits(1, 256), others = draw_digits(2, 128);
  std::vector<float> parameters = first_parameters(1), velocity(kParameters), gradients(kParameters);
  Network network;
  const auto all = first_of(256);
  for (std::size_t step = 0; step < 32; ++step) {
    network.forward(parameters, {.digits = digits, .indices = std::span(all).subspan(step % 8 * 32, 32)});
    ASSERT_TRUE(network.backward(parameters, gradients).is_ok());
    for (std::size_t i = 0; i < kParameters; ++i) {
      velocity[i] = 0.9F * velocity[i] + gradients[i];
      parameters[i] -= 0.05F * velocity[i];
    }
  }
  const auto held_out = first_of(128);
  network.forward(parameters, {.digits = others, .indices = held_out});
  EXPECT_GT(network.right(), 40U);  // by chance 13
}

TEST(Digits, AreThoseOfTheirSeed) {
  const Digits ten = draw_digits(1, 10), five = draw_digits(1, 5), others = draw_digits(2, 10);
  EXPECT_TRUE(std::equal(five.pixels.begin(), five.pixels.end(), ten.pixels.begin()));
  EXPECT_NE(ten.pixels, others.pixels);
}

}  // namespace
}  // namespace tutti::harness::train
