// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/stragglers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "impl/types/status.h"

namespace tutti::embed {
namespace {

/// ln P(X = hits).
double log_of_binomial(std::int64_t trials, std::int64_t hits, double share) {
  const auto n = static_cast<double>(trials), k = static_cast<double>(hits);
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(share) +
         (n - k) * std::log1p(-share);
}

}  // namespace

std::optional<LastRank> Arrivals::add(std::span<const double> came, double took, double apart) {
  if (ranks.empty()) ranks.resize(came.size());
  TUTTI_ASSERT(came.size() == ranks.size(), "arrivals of {} ranks beside those of {}", came.size(), ranks.size());
  ++operations;
  time += took;
  if (came.size() < 2) return std::nullopt;
  const auto last = std::ranges::max_element(came);
  const double sum = std::accumulate(came.begin(), came.end(), 0.0,
                                     [last](double total, double one) { return total + (*last - one); });
  const double waited = sum / static_cast<double>(came.size() - 1);
  if (!(waited > apart)) return std::nullopt;
  RankArrivals& rank = ranks[static_cast<std::size_t>(last - came.begin())];
  ++rank.last;
  rank.waited += waited;
  return LastRank{.rank = static_cast<int>(last - came.begin()), .waited = waited};
}

void Arrivals::add(const Arrivals& other) {
  if (other.ranks.empty()) return;
  if (ranks.empty()) ranks.resize(other.ranks.size());
  TUTTI_ASSERT(ranks.size() == other.ranks.size(), "arrivals of {} ranks beside those of {}", other.ranks.size(),
               ranks.size());
  operations += other.operations;
  time += other.time;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].last += other.ranks[rank].last;
    ranks[rank].waited += other.ranks[rank].waited;
  }
}

std::vector<Straggler> stragglers_of(const Arrivals& arrivals) {
  std::vector<Straggler> all;
  const double alike = arrivals.ranks.empty() ? 1 : 1 / static_cast<double>(arrivals.ranks.size());
  for (const RankArrivals& one : arrivals.ranks) {
    Straggler rank{.rank = static_cast<int>(all.size()),
                   .last = one.last,
                   .share = arrivals.time > 0 ? one.waited / arrivals.time : 0,
                   .chance = binomial_tail(arrivals.operations, one.last, alike)};
    rank.is_one = rank.chance < kStragglerChance && rank.share > kStragglerShare;
    all.push_back(rank);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Straggler::share);
  return all;
}

double binomial_tail(std::int64_t trials, std::int64_t least, double share) {
  if (least <= 0) return 1;
  if (least > trials || share <= 0) return 0;
  if (share >= 1) return 1;
  // The shorter side of the distribution is added up, from its largest term outwards.
  const bool is_above = static_cast<double>(least) > static_cast<double>(trials) * share;
  const double odds = share / (1 - share);
  double term = std::exp(log_of_binomial(trials, is_above ? least : least - 1, share));
  double sum = term;
  if (is_above) {
    for (std::int64_t k = least; k < trials && term > sum * 1e-17; ++k) {
      term *= odds * static_cast<double>(trials - k) / static_cast<double>(k + 1);
      sum += term;
    }
    return std::min(1.0, sum);
  }
  for (std::int64_t k = least - 1; k > 0 && term > sum * 1e-17; --k) {
    term *= static_cast<double>(k) / static_cast<double>(trials - k + 1) / odds;
    sum += term;
  }
  return std::max(0.0, 1 - sum);
}

}  // namespace tutti::embed
