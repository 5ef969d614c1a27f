// SPDX-License-Identifier: Apache-2.0
// Groups of thread blocks: worlds of their own on the devices of the world that they come from.
#include <algorithm>

#include "impl/communicator/block_joining.h"
#include "impl/communicator/block_world.h"
#include "impl/transports/group_domain.h"

namespace tutti {

Result<std::uint64_t> BlockWorld::form(int rank, const Wish& wish) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
  TUTTI_RETURN_IF_ERROR(check_not_captured(rank, "the forming of a group"));
  if (is_shared()) return begin_joining(rank, wish);
  const std::uint64_t number = formed_[static_cast<std::size_t>(rank)]++;
  while (formings_.size() <= number) {
    formings_.emplace_back().wishes.resize(static_cast<std::size_t>(ranks_));
  }
  Forming& forming = formings_[number];
  forming.wishes[static_cast<std::size_t>(rank)] = wish;
  if (++forming.count == ranks_) forming.status = conclude(forming);
  return number;
}

Status BlockWorld::conclude(Forming& forming) {
  for (int rank = 1; rank < ranks_; ++rank) {
    if (forming.wishes[static_cast<std::size_t>(rank)].list == forming.wishes.front().list) continue;
    return error(Code::mismatch, "{} and {} do not form the same group: the list of ranks must be the same on all",
                 domain_->name_of(0), domain_->name_of(rank));
  }
  std::map<int, std::vector<int>> members;  // by colour
  for (int rank = 0; rank < ranks_; ++rank) {
    const int colour = forming.wishes[static_cast<std::size_t>(rank)].colour;
    if (colour >= 0) members[colour].push_back(rank);
  }
  std::vector<Membership> memberships(static_cast<std::size_t>(ranks_));
  for (auto& [colour, ranks] : members) {
    std::ranges::stable_sort(ranks, {}, [&](int rank) { return forming.wishes[static_cast<std::size_t>(rank)].key; });
    const DomainShape shape = group_shape(domain_->shape(), static_cast<int>(ranks.size()));
    TUTTI_ASSIGN_OR_RETURN(auto memory, domain_->make_group_memory(domain_bytes(shape)));
    std::vector<int> world_ranks, device_of;
    for (const int rank : ranks) {
      world_ranks.push_back(domain_->world_rank(rank));
      device_of.push_back(place_of(rank).index);
    }
    auto domain = std::make_shared<GroupDomain>(domain_->world(), std::move(world_ranks), shape, std::move(memory));
    TUTTI_ASSIGN_OR_RETURN(auto world, make(std::move(domain), common_, device_of));
    for (int place = 0; const int rank : ranks)
      memberships[static_cast<std::size_t>(rank)] = {.world = world, .rank = place++};
  }
  forming.memberships = std::move(memberships);
  return {};
}

Result<bool> BlockWorld::is_formed(int rank, std::uint64_t formation) {
  const std::lock_guard lock(mutex_);
  (void)rank;
  Forming& forming = formings_[formation];
  if (is_shared()) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_over, go_on_joining(forming));
    if (!is_over) return false;
  } else if (forming.count < ranks_) {
    TUTTI_RETURN_IF_ERROR(failed_);
    return false;
  }
  TUTTI_RETURN_IF_ERROR(forming.status);
  return true;
}

BlockWorld::Membership BlockWorld::membership(int rank, std::uint64_t formation) {
  const std::lock_guard lock(mutex_);
  return std::move(formings_[formation].memberships[static_cast<std::size_t>(rank)]);
}

}  // namespace tutti
