// SPDX-License-Identifier: Apache-2.0
#include "harness/train/network.h"

#include <algorithm>
#include <cmath>

#include "impl/types/scramble.h"

namespace tutti::harness::train {
namespace {

constexpr std::size_t kKernel = 5;
constexpr std::size_t kTaps = kKernel * kKernel;
constexpr std::size_t kChannels1 = 10, kChannels2 = 20;
constexpr std::size_t kConv1Side = 24, kPool1Side = 12, kConv2Side = 8, kPool2Side = 4;
constexpr std::size_t kPool1 = kChannels1 * kPool1Side * kPool1Side;
constexpr std::size_t kPool2 = kChannels2 * kPool2Side * kPool2Side;
constexpr std::size_t kHidden = 50;

// Those of MNIST, which programs that learn it take away and divide by.
constexpr float kMean = 0.1307F;
constexpr float kDeviation = 0.3081F;

enum TensorIndex : std::uint8_t {
  fc2_weight,
  fc2_bias,
  fc1_weight,
  fc1_bias,
  conv2_weight,
  conv2_bias,
  conv1_weight,
  conv1_bias
};

constexpr bool are_side_by_side() {
  std::size_t at = 0;
  for (const Tensor& tensor : kTensors) {
    if (tensor.first != at) return false;
    at += tensor.count;
  }
  return at == kParameters;
}
static_assert(are_side_by_side());
static_assert(kTensors[fc1_weight].count == kPool2 * kHidden &&
              kTensors[conv2_weight].count == kChannels2 * kChannels1 * kTaps);

const float* at(std::span<const float> all, TensorIndex tensor) { return all.data() + kTensors[tensor].first; }
float* at(std::span<float> all, TensorIndex tensor) { return all.data() + kTensors[tensor].first; }

/// A convolution of one image, then the largest of each 2 x 2, then relu. `kSide`: of an output of the convolution.
/// Shapes: in[kIn][kSide + 4][kSide + 4], weight[kOut][kIn][5][5], bias[kOut], out and chosen[kOut][kSide / 2][kSide /
/// 2].
template <std::size_t kIn, std::size_t kOut, std::size_t kSide>
void convolve(const float* in, const float* weight, const float* bias, float* out, std::uint8_t* chosen) {
  constexpr std::size_t kInSide = kSide + kKernel - 1, kHalf = kSide / 2;
  for (std::size_t o = 0; o < kOut; ++o) {
    for (std::size_t y = 0; y < kSide; y += 2) {
      float rows[2][kSide];
      for (std::size_t half = 0; half < 2; ++half) {
        float sum[kSide];
        for (std::size_t x = 0; x < kSide; ++x) sum[x] = bias[o];
        for (std::size_t i = 0; i < kIn; ++i) {
          for (std::size_t ky = 0; ky < kKernel; ++ky) {
            const float* const row = in + (i * kInSide + y + half + ky) * kInSide;
            const float* const taps = weight + (o * kIn + i) * kTaps + ky * kKernel;
            for (std::size_t kx = 0; kx < kKernel; ++kx) {
              for (std::size_t x = 0; x < kSide; ++x) sum[x] += taps[kx] * row[x + kx];
            }
          }
        }
        std::copy_n(sum, kSide, rows[half]);
      }
      for (std::size_t x = 0; x < kHalf; ++x) {
        const float four[4] = {rows[0][2 * x], rows[0][2 * x + 1], rows[1][2 * x], rows[1][2 * x + 1]};
        const auto largest = static_cast<std::size_t>(std::max_element(four, four + 4) - four);
        const std::size_t place = (o * kHalf + y / 2) * kHalf + x;
        out[place] = std::max(four[largest], 0.0F);
        chosen[place] = static_cast<std::uint8_t>(largest);
      }
    }
  }
}

/// What the gradient of one channel's pooled outputs is for the convolution's outputs: relu lets none through where the
/// output is 0, and a pool gives all to the one that it took.
template <std::size_t kSide>
void unpool(const float* to_pooled, const float* pooled, const std::uint8_t* chosen, float* to_outputs) {
  constexpr std::size_t kHalf = kSide / 2;
  std::fill_n(to_outputs, kSide * kSide, 0.0F);
  for (std::size_t y = 0; y < kHalf; ++y) {
    for (std::size_t x = 0; x < kHalf; ++x) {
      const std::size_t place = y * kHalf + x;
      if (pooled[place] <= 0) continue;
      const std::size_t which = chosen[place];
      to_outputs[(2 * y + which / 2) * kSide + 2 * x + which % 2] = to_pooled[place];
    }
  }
}

/// Adds one image's part to the gradients of a convolution's weights and biases, and where `to_in` is not null to the
/// gradient of its inputs. Shapes: as convolve; to_pooled as out.
template <std::size_t kIn, std::size_t kOut, std::size_t kSide>
void convolve_back(const float* in, const float* weight, const float* pooled, const std::uint8_t* chosen,
                   const float* to_pooled, float* to_weight, float* to_bias, float* to_in) {
  constexpr std::size_t kInSide = kSide + kKernel - 1, kHalf = kSide / 2, kPlaces = kHalf * kHalf;
  constexpr std::size_t kLanes = 8;  // so that a sum is one of vectors, in an order that does not depend on the machine
  static_assert(kSide % kLanes == 0);
  for (std::size_t o = 0; o < kOut; ++o) {
    float to_out[kSide * kSide];
    unpool<kSide>(to_pooled + o * kPlaces, pooled + o * kPlaces, chosen + o * kPlaces, to_out);
    float bias = 0;
    for (const float value : to_out) bias += value;
    to_bias[o] += bias;
    for (std::size_t i = 0; i < kIn; ++i) {
      for (std::size_t ky = 0; ky < kKernel; ++ky) {
        for (std::size_t kx = 0; kx < kKernel; ++kx) {
          float lanes[kLanes] = {};
          for (std::size_t y = 0; y < kSide; ++y) {
            const float* const row = in + (i * kInSide + y + ky) * kInSide + kx;
            for (std::size_t x = 0; x < kSide; x += kLanes) {
              for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += to_out[y * kSide + x + l] * row[x + l];
            }
          }
          float sum = 0;
          for (const float lane : lanes) sum += lane;
          to_weight[(o * kIn + i) * kTaps + ky * kKernel + kx] += sum;
        }
      }
      if (to_in == nullptr) continue;
      const float* const taps = weight + (o * kIn + i) * kTaps;
      for (std::size_t y = 0; y < kSide; ++y) {
        for (std::size_t ky = 0; ky < kKernel; ++ky) {
          float* const row = to_in + (i * kInSide + y + ky) * kInSide;
          for (std::size_t kx = 0; kx < kKernel; ++kx) {
            for (std::size_t x = 0; x < kSide; ++x) row[x + kx] += taps[ky * kKernel + kx] * to_out[y * kSide + x];
          }
        }
      }
    }
  }
}

/// out[n] = weight[n][m] in[m] + bias[n].
void connect(const float* in, std::size_t m, const float* weight, const float* bias, float* out, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  for (std::size_t o = 0; o < n; ++o) {
    float lanes[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += weight[o * m + i + l] * in[i + l];
    }
    float sum = bias[o];
    for (; i < m; ++i) sum += weight[o * m + i] * in[i];
    for (const float lane : lanes) sum += lane;
    out[o] = sum;
  }
}

/// Adds to to_weight[n][m] and to_bias[n], and sets to_in[m], from to_out[n].
void connect_back(const float* in, std::size_t m, const float* weight, const float* to_out, std::size_t n,
                  float* to_weight, float* to_bias, float* to_in) {
  std::fill_n(to_in, m, 0.0F);
  for (std::size_t o = 0; o < n; ++o) {
    const float value = to_out[o];
    to_bias[o] += value;
    for (std::size_t i = 0; i < m; ++i) to_weight[o * m + i] += value * in[i];
    for (std::size_t i = 0; i < m; ++i) to_in[i] += value * weight[o * m + i];
  }
}

}  // namespace

std::vector<float> first_parameters(std::uint64_t seed) {
  constexpr int kBits = 24;  // of a float
  std::vector<float> parameters;
  parameters.reserve(kParameters);
  std::uint64_t state = scramble(seed);
  for (const Tensor& tensor : kTensors) {
    const float most = 1 / std::sqrt(static_cast<float>(tensor.fan_in));
    for (std::size_t i = 0; i < tensor.count; ++i) {
      const std::uint64_t drawn = scramble(state += kScrambleStep);
      const auto share = static_cast<float>(drawn >> (64 - kBits)) / static_cast<float>(1 << kBits);
      parameters.push_back((2 * share - 1) * most);
    }
  }
  return parameters;
}

double Network::forward(std::span<const float> parameters, const Batch& batch) {
  count_ = batch.indices.size();
  input_.resize(count_ * kPixels);
  pooled1_.resize(count_ * kPool1);
  chosen1_.resize(count_ * kPool1);
  pooled2_.resize(count_ * kPool2);
  chosen2_.resize(count_ * kPool2);
  hidden_.resize(count_ * kHidden);
  scores_.resize(count_ * kClasses);
  labels_.resize(count_);
  double loss = 0;
  for (std::size_t n = 0; n < count_; ++n) {
    const std::size_t index = batch.indices[n];
    std::ranges::transform(batch.digits.image(index), input_.begin() + static_cast<std::ptrdiff_t>(n * kPixels),
                           [](std::uint8_t byte) { return (static_cast<float>(byte) / 255.0F - kMean) / kDeviation; });
    labels_[n] = batch.digits.labels[index];
    forward_image(parameters, n);
    loss -= static_cast<double>(scores_[n * kClasses + labels_[n]]);
  }
  return loss / static_cast<double>(count_);
}

void Network::forward_image(std::span<const float> parameters, std::size_t slot) {
  float* const pooled1 = pooled1_.data() + slot * kPool1;
  float* const pooled2 = pooled2_.data() + slot * kPool2;
  float* const hidden = hidden_.data() + slot * kHidden;
  float* const scores = scores_.data() + slot * kClasses;
  convolve<1, kChannels1, kConv1Side>(input_.data() + slot * kPixels, at(parameters, conv1_weight),
                                      at(parameters, conv1_bias), pooled1, chosen1_.data() + slot * kPool1);
  convolve<kChannels1, kChannels2, kConv2Side>(pooled1, at(parameters, conv2_weight), at(parameters, conv2_bias),
                                               pooled2, chosen2_.data() + slot * kPool2);
  connect(pooled2, kPool2, at(parameters, fc1_weight), at(parameters, fc1_bias), hidden, kHidden);
  for (std::size_t i = 0; i < kHidden; ++i) hidden[i] = std::max(hidden[i], 0.0F);
  connect(hidden, kHidden, at(parameters, fc2_weight), at(parameters, fc2_bias), scores, kClasses);
  const float largest = *std::max_element(scores, scores + kClasses);
  float sum = 0;
  for (std::size_t i = 0; i < kClasses; ++i) sum += std::exp(scores[i] - largest);
  const float log_sum = largest + std::log(sum);
  for (std::size_t i = 0; i < kClasses; ++i) scores[i] -= log_sum;
}

Status Network::backward(std::span<const float> parameters, std::span<float> gradients, const BackwardHooks& hooks) {
  std::ranges::fill(gradients, 0.0F);
  to_hidden_.resize(count_ * kHidden);
  to_pooled2_.resize(count_ * kPool2);
  to_pooled1_.assign(count_ * kPool1, 0.0F);
  const auto pause = [&] { return hooks.on_pause ? hooks.on_pause() : Status(); };
  const auto filled = [&](TensorIndex last) {
    return hooks.on_filled ? hooks.on_filled(kTensors[last].first + kTensors[last].count) : Status();
  };
  for (std::size_t n = 0; n < count_; ++n) {
    float to_scores[kClasses];
    for (std::size_t i = 0; i < kClasses; ++i) {
      const float right = i == labels_[n] ? 1.0F : 0.0F;
      to_scores[i] = (std::exp(scores_[n * kClasses + i]) - right) / static_cast<float>(count_);
    }
    connect_back(hidden_.data() + n * kHidden, kHidden, at(parameters, fc2_weight), to_scores, kClasses,
                 at(gradients, fc2_weight), at(gradients, fc2_bias), to_hidden_.data() + n * kHidden);
  }
  TUTTI_RETURN_IF_ERROR(filled(fc2_bias));
  for (std::size_t n = 0; n < count_; ++n) {
    float* const to_hidden = to_hidden_.data() + n * kHidden;
    for (std::size_t i = 0; i < kHidden; ++i) {
      if (hidden_[n * kHidden + i] <= 0) to_hidden[i] = 0;
    }
    connect_back(pooled2_.data() + n * kPool2, kPool2, at(parameters, fc1_weight), to_hidden, kHidden,
                 at(gradients, fc1_weight), at(gradients, fc1_bias), to_pooled2_.data() + n * kPool2);
    TUTTI_RETURN_IF_ERROR(pause());
  }
  TUTTI_RETURN_IF_ERROR(filled(fc1_bias));
  for (std::size_t n = 0; n < count_; ++n) {
    convolve_back<kChannels1, kChannels2, kConv2Side>(pooled1_.data() + n * kPool1, at(parameters, conv2_weight),
                                                      pooled2_.data() + n * kPool2, chosen2_.data() + n * kPool2,
                                                      to_pooled2_.data() + n * kPool2, at(gradients, conv2_weight),
                                                      at(gradients, conv2_bias), to_pooled1_.data() + n * kPool1);
    TUTTI_RETURN_IF_ERROR(pause());
  }
  TUTTI_RETURN_IF_ERROR(filled(conv2_bias));
  for (std::size_t n = 0; n < count_; ++n) {
    convolve_back<1, kChannels1, kConv1Side>(input_.data() + n * kPixels, at(parameters, conv1_weight),
                                             pooled1_.data() + n * kPool1, chosen1_.data() + n * kPool1,
                                             to_pooled1_.data() + n * kPool1, at(gradients, conv1_weight),
                                             at(gradients, conv1_bias), nullptr);
    TUTTI_RETURN_IF_ERROR(pause());
  }
  return filled(conv1_bias);
}

std::size_t Network::right() const {
  std::size_t right = 0;
  for (std::size_t n = 0; n < count_; ++n) {
    const float* const scores = scores_.data() + n * kClasses;
    right += std::max_element(scores, scores + kClasses) - scores == labels_[n] ? 1 : 0;
  }
  return right;
}

}  // namespace tutti::harness::train
