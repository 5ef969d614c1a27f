// SPDX-License-Identifier: Apache-2.0
// A network with two convolutions for digits, as the tutorials of distributed training have it:
//   conv 5x5, 1 -> 10 | max pool 2x2 | relu | conv 5x5, 10 -> 20 | max pool 2x2 | relu | fc 320 -> 50 | relu
//   | fc 50 -> 10 | log_softmax, and the negative log likelihood of the right digit
// without dropout, which would be another draw on every rank.
//
// Everything is float in plain loops, layer by layer over all images of a share. The order of all sums is fixed. So the
// same parameters and images give the same bits on every rank.
//
// Parameters and gradients are one vector each. Tensors stand in it in the order in which the backward pass fills them:
// last layer first. So what is filled is always a prefix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/train/digits.h"
#include "impl/types/status.h"

namespace tutti::harness::train {

struct Tensor {
  std::string_view name;
  std::size_t first = 0;   ///< in the vector of parameters
  std::size_t count = 0;   ///< elements
  std::size_t fan_in = 0;  ///< inputs of one output
};
inline constexpr std::array<Tensor, 8> kTensors{{{"fc2.weight", 0, 500, 50},
                                                 {"fc2.bias", 500, 10, 50},
                                                 {"fc1.weight", 510, 16000, 320},
                                                 {"fc1.bias", 16510, 50, 320},
                                                 {"conv2.weight", 16560, 5000, 250},
                                                 {"conv2.bias", 21560, 20, 250},
                                                 {"conv1.weight", 21580, 250, 25},
                                                 {"conv1.bias", 21830, 10, 25}}};
inline constexpr std::size_t kParameters = 21840;

/// Drawn evenly from +-1/sqrt(fan_in).
[[nodiscard]] std::vector<float> first_parameters(std::uint64_t seed);

/// What a backward pass tells.
struct BackwardHooks {
  /// Gradients [0, count) are complete.
  std::function<Status(std::size_t count)> on_filled;
  /// Now and then, so that what is in flight gets on.
  std::function<Status()> on_pause;
};

/// Images of a data set, by their numbers.
struct Batch {
  const Digits& digits;
  std::span<const std::uint32_t> indices;
};

class Network {
 public:
  /// The mean loss of the batch. Shapes: parameters[kParameters]. Requires: the batch is not empty.
  double forward(std::span<const float> parameters, const Batch& batch);
  /// The gradient of what forward has returned. Shapes: gradients[kParameters]. Errors: those of the hooks.
  Status backward(std::span<const float> parameters, std::span<float> gradients, const BackwardHooks& hooks = {});
  /// After forward: of its batch, how many have the largest output at the right digit.
  [[nodiscard]] std::size_t right() const;

 private:
  void forward_image(std::span<const float> parameters, std::size_t slot);

  std::size_t count_ = 0;  ///< images of the last batch
  std::vector<float> input_, pooled1_, pooled2_, hidden_, scores_;
  std::vector<std::uint8_t> chosen1_, chosen2_;  ///< which of the four a pool took
  std::vector<std::uint8_t> labels_;
  std::vector<float> to_hidden_, to_pooled2_, to_pooled1_;  ///< gradients of the activations
};

}  // namespace tutti::harness::train
