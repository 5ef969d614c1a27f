// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/pretend.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "impl/types/status.h"

namespace tutti::harness::accept {
namespace {

constexpr double kBytesPerSecond = 12e9;  // of a healthy pair within a leaf

bool is_of(const Fault& fault, const Transfer& transfer) {
  return fault.first == transfer.sender && fault.second == transfer.receiver;
}

bool is_between(const Fault& fault, const Transfer& transfer) {
  return is_of(fault, transfer) || is_of(fault, {.sender = transfer.receiver, .receiver = transfer.sender});
}

bool is_with(const Fault& fault, const Transfer& transfer) {
  return fault.first == transfer.sender || fault.first == transfer.receiver;
}

}  // namespace

PretendedCrew::PretendedCrew(PretendedCluster cluster) : cluster_(std::move(cluster)), random_(cluster_.seed) {
  const int nodes = cluster_.nodes;
  TUTTI_ASSERT(nodes >= 1 && cluster_.leaf_size >= 1, "{} nodes in leaves of {}", nodes, cluster_.leaf_size);
  TUTTI_ASSERT(cluster_.noise.multiples.empty() || std::ssize(cluster_.noise.multiples) == nodes,
               "{} multiples of noise for {} nodes", cluster_.noise.multiples.size(), nodes);
  for (int node = 0; node < nodes; ++node) {
    out_.push_back(normal() * cluster_.noise.nodes);
    in_.push_back(out_.back() + normal() * cluster_.noise.nodes / 3);
  }
  uplink_out_.assign(static_cast<std::size_t>(leaf_of(nodes - 1) + 1), 0);
  uplink_in_ = uplink_out_;
  for (const Fault& fault : cluster_.faults) put_in(fault);
}

void PretendedCrew::put_in(const Fault& fault) {
  const bool is_of_leaf = fault.trouble == Trouble::uplink || fault.trouble == Trouble::uplink_out;
  const std::size_t most = is_of_leaf ? uplink_out_.size() : out_.size();
  const auto part = static_cast<std::size_t>(fault.first);
  TUTTI_ASSERT(part < most && fault.second >= 0 && fault.second < nodes(), "a fault of {} and {}", fault.first,
               fault.second);
  TUTTI_ASSERT(fault.share >= 0 && fault.share < 1, "a share of {}", fault.share);
  const double loss = std::log1p(-fault.share);
  if (fault.trouble == Trouble::nic || fault.trouble == Trouble::nic_out) out_[part] += loss;
  if (fault.trouble == Trouble::nic || fault.trouble == Trouble::nic_in) in_[part] += loss;
  if (is_of_leaf) uplink_out_[part] += loss;
  if (fault.trouble == Trouble::uplink) uplink_in_[part] += loss;
}

std::string PretendedCrew::name_of(int node) const { return fmt::format("node{}", node + 1); }

/// Box and Muller's.
double PretendedCrew::normal() {
  const double radius = std::sqrt(-2 * std::log(random_.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random_.uniform());
}

double PretendedCrew::noise_of(const Transfer& transfer) {
  const Noise& noise = cluster_.noise;
  double deviation = noise.measurement;
  if (!noise.multiples.empty()) {
    deviation *= std::max(noise.multiples[static_cast<std::size_t>(transfer.sender)],
                          noise.multiples[static_cast<std::size_t>(transfer.receiver)]);
  }
  double sum = normal() * deviation;
  if (random_.uniform() < noise.outliers) sum += std::log(0.3 + 0.6 * random_.uniform());
  return sum;
}

Outcome PretendedCrew::outcome_of(const Transfer& transfer) {
  const auto sender = static_cast<std::size_t>(transfer.sender);
  const auto receiver = static_cast<std::size_t>(transfer.receiver);
  double speed = std::min(out_[sender], in_[receiver]);
  const auto from = static_cast<std::size_t>(leaf_of(transfer.sender));
  const auto to = static_cast<std::size_t>(leaf_of(transfer.receiver));
  if (from != to) speed = std::min({speed, uplink_out_[from], uplink_in_[to]}) + std::log1p(-cluster_.spine_cost);
  speed += std::log(kBytesPerSecond) + noise_of(transfer);
  Outcome outcome;
  const auto end_as = [&outcome](Ending ending, std::string detail) {
    // The gravest of several: no answer comes before no data, and no data before wrong data.
    if (ending > outcome.ending) outcome = {.ending = ending, .log_speed = 0, .detail = std::move(detail)};
  };
  for (const Fault& fault : cluster_.faults) {
    const bool is_slow = (fault.trouble == Trouble::link && is_between(fault, transfer)) ||
                         (fault.trouble == Trouble::link_out && is_of(fault, transfer));
    if (is_slow) speed += std::log1p(-fault.share);
    if (fault.trouble == Trouble::wrong && is_of(fault, transfer)) end_as(Ending::wrong, "element 0 is wrong");
    if (fault.trouble == Trouble::hung && is_between(fault, transfer)) end_as(Ending::hung, "nothing came in time");
    if (fault.trouble == Trouble::dead && is_with(fault, transfer)) {
      end_as(Ending::failed, fmt::format("{} does not answer", name_of(fault.first)));
    }
  }
  if (outcome.ending == Ending::measured) outcome.log_speed = speed;
  return outcome;
}

std::vector<Outcome> PretendedCrew::play(const Round& round) {
  std::vector<bool> sends(out_.size()), receives(out_.size());
  std::vector<Outcome> outcomes;
  for (const Transfer& transfer : round) {
    const auto sender = static_cast<std::size_t>(transfer.sender);
    const auto receiver = static_cast<std::size_t>(transfer.receiver);
    TUTTI_ASSERT(sender < out_.size() && receiver < out_.size() && sender != receiver, "a transfer from {} to {}",
                 transfer.sender, transfer.receiver);
    TUTTI_ASSERT(!sends[sender] && !receives[receiver], "{} to {} is not disjoint from the others", transfer.sender,
                 transfer.receiver);
    sends[sender] = receives[receiver] = true;
    outcomes.push_back(outcome_of(transfer));
  }
  return outcomes;
}

}  // namespace tutti::harness::accept
