// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/block_joining.h"

#include <algorithm>
#include <numeric>

#include "impl/transports/failure.h"
#include "impl/transports/group_domain.h"

namespace tutti {

BlockJoining::BlockJoining(const std::shared_ptr<Domain>& domain, int rank, const BlockWorld::Common& common,
                           BlockRollCall& call)
    : call_(call),
      domain_(*domain),
      rank_(rank),
      common_(common),
      round_(Round::parts),
      members_(static_cast<std::size_t>(domain->shape().ranks)),
      joint_(domain) {
  std::iota(members_.begin(), members_.end(), 0);
  tell(make_part());
}

BlockJoining::BlockJoining(BlockWorld& parent, int rank, const BlockWorld::Wish& wish, BlockRollCall& call)
    : call_(call), domain_(parent.domain()), rank_(rank), common_(parent.common()), round_(Round::wishes) {
  mine_.wish = wish;
  tell({});
}

Result<bool> BlockJoining::test() {
  while (failed_.is_ok() && round_ != Round::complete) {
    const bool is_heard = call_.is_heard();
    if (is_heard) failed_ = first_failure();
    if (failed_.is_ok()) failed_ = announced_failure(domain_);
    if (failed_.is_ok() && !is_heard) return false;
    if (failed_.is_ok()) failed_ = go_on();
  }
  TUTTI_RETURN_IF_ERROR(failed_);
  return true;
}

/// Errors: those that all ranks find; what only this one has is told.
Status BlockJoining::go_on() {
  switch (round_) {
    case Round::wishes:
      for (int rank = 0; rank < domain_.shape().ranks; ++rank) {
        if (call_.all()[static_cast<std::size_t>(rank)].wish.list == mine_.wish.list) continue;
        return error(Code::mismatch, "{} and {} do not form the same group: the list of ranks must be the same on all",
                     domain_.name_of(rank_), domain_.name_of(rank));
      }
      find_members();
      round_ = Round::memory;
      tell(make_memory());
      return {};
    case Round::memory: {
      round_ = Round::parts;
      Status made = take_memory();
      if (made.is_ok() && !members_.empty()) made = make_part();
      tell(made);
      return {};
    }
    case Round::parts:
      round_ = Round::opened;
      tell(members_.empty() ? Status() : open_parts());
      return {};
    default:
      round_ = Round::complete;
      if (memory_ == nullptr) return {};
      memory_->withdraw();
      membership_.world->set_roll_call(std::make_unique<BlockRollCall>(*joint_, membership_.rank));
      return {};
  }
}

void BlockJoining::find_members() {
  if (mine_.wish.colour < 0) return;
  const std::vector<BlockWord>& all = call_.all();
  for (int rank = 0; rank < domain_.shape().ranks; ++rank) {
    if (all[static_cast<std::size_t>(rank)].wish.colour == mine_.wish.colour) members_.push_back(rank);
  }
  std::ranges::stable_sort(members_, {}, [&](int rank) { return all[static_cast<std::size_t>(rank)].wish.key; });
}

Status BlockJoining::make_memory() {
  if (members_.empty() || members_.front() != rank_) return {};
  const DomainShape shape = group_shape(domain_.shape(), static_cast<int>(members_.size()));
  TUTTI_ASSIGN_OR_RETURN(memory_, domain_.make_group_memory(domain_bytes(shape)));
  mine_.memory = memory_->offer();
  return {};
}

Status BlockJoining::take_memory() {
  if (members_.empty()) return {};
  const DomainShape shape = group_shape(domain_.shape(), static_cast<int>(members_.size()));
  if (memory_ == nullptr) {
    const GroupMemory::Offer offer = call_.all()[static_cast<std::size_t>(members_.front())].memory;
    TUTTI_ASSIGN_OR_RETURN(memory_, domain_.take_group_memory(offer, domain_bytes(shape)));
  }
  std::vector<int> world_ranks;
  for (const int member : members_) world_ranks.push_back(domain_.world_rank(member));
  joint_ = std::make_shared<GroupDomain>(domain_.world(), std::move(world_ranks), shape, memory_);
  return {};
}

Status BlockJoining::make_part() {
  std::vector<int> device_of(members_.size());
  std::iota(device_of.begin(), device_of.end(), 0);
  const auto at = std::ranges::find(members_, rank_) - members_.begin();
  BlockWorld::Common common = common_;
  Device* const device = *std::ranges::find_if(common.devices, [](const Device* one) { return one != nullptr; });
  common.devices.assign(members_.size(), nullptr);
  common.devices[static_cast<std::size_t>(at)] = device;
  TUTTI_ASSIGN_OR_RETURN(membership_.world, BlockWorld::make(joint_, common, device_of));
  membership_.rank = static_cast<int>(at);
  TUTTI_ASSIGN_OR_RETURN(mine_.part, membership_.world->part());
  return {};
}

Status BlockJoining::open_parts() {
  std::vector<BlockWorld::Part> parts;
  for (const int member : members_) parts.push_back(call_.all()[static_cast<std::size_t>(member)].part);
  return membership_.world->open(parts);
}

void BlockJoining::tell(const Status& status) {
  mine_.code = status.code();
  if (!status.is_ok()) {
    const std::string reason(status.message());
    reason.copy(mine_.reason.data(), mine_.reason.size() - 1);
  }
  call_.tell(mine_);
}

Status BlockJoining::first_failure() const {
  for (int rank = 0; const BlockWord& word : call_.all()) {
    if (word.code != Code::ok && rank == rank_) return error(word.code, "{}", word.reason.data());
    if (word.code != Code::ok) return error(word.code, "{}: {}", domain_.name_of(rank), word.reason.data());
    ++rank;
  }
  return {};
}

}  // namespace tutti
