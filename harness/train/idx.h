// SPDX-License-Identifier: Apache-2.0
// MNIST's files, where the user has them: IDX, which is a magic number, big-endian sizes, and bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "harness/train/digits.h"
#include "impl/types/status.h"

namespace tutti::harness::train {

inline constexpr std::size_t kMostImages = 100'000;  ///< of a set: MNIST has 60,000 and 10,000

struct DigitSets {
  Digits learned;
  Digits held_out;  ///< not learned from: how right the network is on others
};

/// The first `most` images of one pair of files. Errors: invalid_argument naming the file and what is wrong with it: it
/// cannot be read, its magic number is another one, its images are not 28 x 28, there are none or more than
/// kMostImages, it is longer or shorter than its sizes say, a label is above 9, or the two have not as many images.
[[nodiscard]] Result<Digits> read_idx(const std::string& images, const std::string& labels, std::size_t most);

/// `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, and the same with `t10k`, in `folder`; their names may have a
/// dot before `idx`. At most `most` and `most_held_out` images. Errors: those of read_idx; unavailable where a file is
/// not there, or where there is a compressed one only.
[[nodiscard]] Result<DigitSets> read_mnist(const std::string& folder, std::size_t most, std::size_t most_held_out);

}  // namespace tutti::harness::train
