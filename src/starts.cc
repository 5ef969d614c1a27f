// SPDX-License-Identifier: Apache-2.0
#include "src/starts.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <string_view>
#include <utility>

#include "harness/cases/lists.h"

namespace tutti::program {
namespace {

using harness::Case;

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Cells that are neighbours and can share a start of the ranks.
std::vector<Cells> by_place(std::span<const std::vector<Case>> cells) {
  const auto place_of = [](const std::vector<Case>& cases) {
    return std::pair(cases.front().ranks, std::string_view(cases.front().transport));
  };
  std::vector<Cells> places;
  for (const std::vector<Case>& cell : cells) {
    const bool is_next = places.empty() || place_of(places.back().front()) != place_of(cell);
    if (is_next) places.emplace_back();
    places.back().push_back(cell);
  }
  return places;
}

}  // namespace

bool is_own(const Case& one) { return harness::backend_of(one.backend) == harness::kOwnBackend; }

Starts::Starts(std::span<const std::vector<Case>> cells, int launches, std::uint64_t seed,
               std::vector<Starter> starters)
    : starters_(std::move(starters)), is_over_(starters_.size(), false) {
  const std::vector<Cells> places = by_place(cells);
  for (int launch = 0; launch < launches; ++launch) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(launch));
    for (Cells place : places) {
      if (launches > 1) std::ranges::shuffle(place, random);
      places_.push_back(std::move(place));
      for (std::size_t i = 0; i < starters_.size(); ++i) {
        const Position at{.place = places_.size() - 1, .starter = i};
        if (size_of(at) > 0) all_.push_back(at);
      }
    }
  }
  count_again();
}

Cells Starts::share_of(const Position& at) const {
  if (is_over_[at.starter]) return {};
  const std::vector<std::string>& references = starters_[at.starter].references;
  Cells share;
  for (const std::vector<Case>& cell : places_[at.place]) {
    std::vector<Case> cases;
    std::ranges::copy_if(cell, std::back_inserter(cases), [&](const Case& one) {
      return is_own(one) || has(references, harness::instance_of(one.backend));
    });
    if (!cases.empty()) share.push_back(std::move(cases));
  }
  return share;
}

std::size_t Starts::size_of(const Position& at) const { return share_of(at).size(); }

std::optional<Start> Starts::next() {
  first_ += std::exchange(at_hand_, 0);
  for (; next_ < all_.size(); ++next_) {
    Cells share = share_of(all_[next_]);
    if (share.empty()) continue;
    at_hand_ = share.size();
    const std::size_t index = next_++;
    return Start{.number = static_cast<int>(index) + 1,
                 .first = first_,
                 .starter = starters_[all_[index].starter],
                 .cells = std::move(share)};
  }
  return std::nullopt;
}

void Starts::count_again() {
  cells_ = first_ + at_hand_;
  for (std::size_t i = next_; i < all_.size(); ++i) cells_ += size_of(all_[i]);
}

void Starts::leave_out_starter() {
  is_over_[all_[next_ - 1].starter] = true;
  count_again();
}

bool Starts::has_other_starter(std::size_t than) const {
  for (std::size_t i = 0; i < starters_.size(); ++i) {
    if (i != than && !is_over_[i]) return true;
  }
  return false;
}

std::size_t Starts::give_up(const std::vector<std::string>& references) {
  --next_;
  at_hand_ = 0;
  std::size_t lost = 0;
  const std::size_t index = all_[next_].starter;
  for (std::size_t i = next_; i < all_.size(); ++i) {
    if (all_[i].starter != index) continue;
    for (const std::vector<Case>& cell : places_[all_[i].place]) {
      lost += static_cast<std::size_t>(std::ranges::count_if(
          cell, [&](const Case& one) { return has(references, harness::instance_of(one.backend)); }));
    }
  }
  Starter& starter = starters_[index];
  std::erase_if(starter.references, [&](const std::string& name) { return has(references, name); });
  std::erase_if(starter.on_gpus, [&](const std::string& name) { return has(references, name); });
  if (starter.references.empty()) {
    is_over_[index] = has_other_starter(index);
    starter = Starter();
  }
  count_again();
  return lost;
}

}  // namespace tutti::program
