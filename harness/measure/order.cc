// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/order.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tutti::harness::measure {
namespace {

constexpr std::uint64_t kStepsBetweenLooks = 256;
/// A policy lasts for 16 to 2048 steps.
constexpr std::uint64_t kLeastSteps = 16, kDoublings = 8;
constexpr std::array<std::uint64_t, 5> kHeldEighths{0, 0, 2, 4, 7};
constexpr std::uint64_t kStarvedEighths = 7;
constexpr std::uint64_t kDemotions = 16;  ///< the chosen rank goes to the end in 1 of kDemotions steps

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29U);
}

}  // namespace

Order::Order(std::uint64_t seed, int ranks)
    : seed_(seed), ranks_(static_cast<std::size_t>(ranks)), priorities_(static_cast<std::size_t>(ranks)) {
  begin("");
}

void Order::begin(std::string_view what) {
  std::uint64_t hash = mixed(0, seed_);
  for (const char c : what) hash = mixed(hash, static_cast<unsigned char>(c));
  random_.seed(hash);
  last_ = 0;
  draw_policy();
}

void Order::draw_policy() {
  policy_ = static_cast<Policy>(draw(kPolicies));
  steps_of_policy_ = kLeastSteps << draw(kDoublings);
  held_eighths_ = kHeldEighths[draw(kHeldEighths.size())];
  victim_ = draw(ranks_);
  std::iota(priorities_.begin(), priorities_.end(), 0U);
  for (std::size_t i = ranks_; i > 1; --i) std::swap(priorities_[i - 1], priorities_[draw(i)]);
}

bool Order::holds_back() {
  const bool is_starved = policy_ == Policy::starved && last_ == victim_;
  const bool holds = draw(8) < (is_starved ? kStarvedEighths : held_eighths_);
  was_held_ |= holds;
  return holds;
}

std::optional<std::size_t> Order::choose() {
  able_.clear();
  for (std::size_t i = 0; i < ranks_; ++i) {
    if (!is_done_[i] && !is_stuck_[i]) able_.push_back(i);
  }
  if (able_.empty()) return {};
  if (policy_ == Policy::reversed) {
    const auto after = std::lower_bound(able_.begin(), able_.end(), last_);
    return after == able_.begin() ? able_.back() : *(after - 1);
  }
  if (policy_ == Policy::persistent && std::ranges::binary_search(able_, last_)) return last_;
  if (policy_ == Policy::priorities) {
    const auto first = std::ranges::find_if(priorities_, [&](std::size_t i) { return !is_done_[i] && !is_stuck_[i]; });
    const std::size_t chosen = *first;
    if (draw(kDemotions) == 0) std::rotate(first, first + 1, priorities_.end());
    return chosen;
  }
  if (policy_ == Policy::starved && able_.size() > 1) std::erase(able_, victim_);
  return able_[draw(able_.size())];
}

void Order::take_note(std::size_t index, bool is_done) {
  ++steps_;
  trace_ = mixed(trace_, 4 * index + (has_gone_on_ ? 2 : 0) + (is_done ? 1 : 0));
  is_done_[index] = is_done;
  if (has_gone_on_ || is_done) {
    is_stuck_.assign(ranks_, false);
  } else if (!was_held_) {
    is_stuck_[index] = true;
  }
}

Status Order::drive(const Actions& actions) {
  is_done_.assign(ranks_, false);
  is_stuck_.assign(ranks_, false);
  for (std::size_t pending = ranks_; pending > 0;) {
    if (steps_of_policy_-- == 0) draw_policy();
    const std::optional<std::size_t> chosen = choose();
    if (!chosen) {
      const auto first = static_cast<std::size_t>(std::ranges::find(is_done_, false) - is_done_.begin());
      return error(Code::timeout, "no rank can go on; {}", actions.position(first));
    }
    last_ = *chosen;
    has_gone_on_ = was_held_ = false;
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, actions.step(*chosen));
    take_note(*chosen, is_done);
    if (is_done) --pending;
    if (steps_ % kStepsBetweenLooks == 0) TUTTI_RETURN_IF_ERROR(actions.look_around());
  }
  return {};
}

}  // namespace tutti::harness::measure
