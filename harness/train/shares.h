// SPDX-License-Identifier: Apache-2.0
// Which rank learns from which images, as distributed SGD deals them out. The numbers of all images are shuffled once,
// by the seed, and cut into equal shares; what is left over is left out. A rank goes through its share in every epoch,
// in an order of its own, and the global batch is divided by the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::train {

class Shares {
 public:
  struct Shape {
    std::size_t images = 0;
    int ranks = 1;
    std::size_t batch = 0;  ///< of all ranks together
    std::uint64_t seed = 1;
  };
  /// Requires: at least one image and one of the batch for each rank.
  explicit Shares(const Shape& shape);

  [[nodiscard]] std::size_t images_of_rank() const { return of_rank_; }
  /// Images of one step on one rank; the last step of an epoch has what is left.
  [[nodiscard]] std::size_t batch_of_rank() const { return batch_; }
  [[nodiscard]] std::size_t steps_of_epoch() const { return (of_rank_ + batch_ - 1) / batch_; }
  /// The numbers of the images of `rank` in step `step`, counted from the first epoch on. Valid until that rank's
  /// step of another epoch is asked for.
  [[nodiscard]] std::span<const std::uint32_t> batch(std::size_t step, int rank);

 private:
  std::uint64_t seed_;
  std::size_t of_rank_;
  std::size_t batch_;
  std::vector<std::uint32_t> shuffled_;  // of all ranks
  /// One for each rank: the order of the epoch that was asked for last.
  struct Order {
    std::size_t epoch = 0;
    std::vector<std::uint32_t> images = {};
  };
  std::vector<Order> orders_;
};

}  // namespace tutti::harness::train
