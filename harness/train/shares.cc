// SPDX-License-Identifier: Apache-2.0
#include "harness/train/shares.h"

#include <algorithm>
#include <numeric>

#include "impl/types/scramble.h"

namespace tutti::harness::train {
namespace {

void shuffle(std::span<std::uint32_t> all, std::uint64_t state) {
  for (std::size_t left = all.size(); left > 1; --left) {
    std::swap(all[left - 1], all[scramble(state += kScrambleStep) % left]);
  }
}

}  // namespace

Shares::Shares(const Shape& shape)
    : seed_(shape.seed),
      of_rank_(shape.images / static_cast<std::size_t>(shape.ranks)),
      batch_(std::min(shape.batch / static_cast<std::size_t>(shape.ranks), of_rank_)),
      shuffled_(shape.images),
      orders_(static_cast<std::size_t>(shape.ranks)) {
  std::iota(shuffled_.begin(), shuffled_.end(), 0U);
  shuffle(shuffled_, scramble(seed_));
}

std::span<const std::uint32_t> Shares::batch(std::size_t step, int rank) {
  const std::size_t epoch = step / steps_of_epoch(), first = step % steps_of_epoch() * batch_;
  Order& order = orders_[static_cast<std::size_t>(rank)];
  if (order.images.empty() || order.epoch != epoch) {
    order.epoch = epoch;
    const auto share = std::span(shuffled_).subspan(static_cast<std::size_t>(rank) * of_rank_, of_rank_);
    order.images.assign(share.begin(), share.end());
    shuffle(order.images, scramble(seed_ + epoch + 1) ^ scramble(static_cast<std::uint64_t>(rank)));
  }
  return std::span(order.images).subspan(first, std::min(batch_, of_rank_ - first));
}

}  // namespace tutti::harness::train
