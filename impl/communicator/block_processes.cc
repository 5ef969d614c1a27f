// SPDX-License-Identifier: Apache-2.0
// Worlds of thread blocks whose ranks are processes, each with a device of its own: what a process has on its device
// the others open there, and they part only when nobody can write to it any more.
#include <algorithm>
#include <cstring>

#include "impl/communicator/block_joining.h"
#include "impl/communicator/block_world.h"
#include "impl/device/opener.h"

namespace tutti {

BlockWorld::~BlockWorld() {
  if (is_shared()) common_.queues->give_back(queue_);
  if (!is_open_) return;
  for (Place& place : places_) place.opened.reset();
  domain_->seat(ranks_here_.front()).journal->has_left.store(1, std::memory_order_release);
  for (Place& place : places_) {
    if (place.device != nullptr) common_.left->add(std::move(place.memory), domain_);
  }
  common_.left->release();
}

Result<BlockWorld::Part> BlockWorld::part() const {
  Part part;
  if (!is_shared()) return part;
  const Place& mine = here();
  TUTTI_ASSIGN_OR_RETURN(part.offer, mine.device->offer(mine.base));
  const std::string place = mine.device->place(), name = mine.device->name();
  place.copy(part.place.data(), part.place.size() - 1);
  name.copy(part.device.data(), part.device.size() - 1);
  return part;
}

Status BlockWorld::open(std::span<const Part> parts) {
  if (!is_shared()) return {};
  for (int rank = 0; rank < ranks_; ++rank) {
    const Part& part = parts[static_cast<std::size_t>(rank)];
    for (int other = 0; other < rank; ++other) {
      if (parts[static_cast<std::size_t>(other)].place != part.place) continue;
      return error(
          Code::unavailable,
          "{} and {} are processes on one GPU, {} ({}), where they take turns: each would wait for the other for "
          "as long as it runs; {}",
          domain_->name_of(other), domain_->name_of(rank), part.place.data(), part.device.data(), kSeveralOnOneGpu);
    }
  }
  is_open_ = true;
  Device& device = *here().device;
  for (Place& place : places_) {
    if (place.device != nullptr) continue;
    const Part& part = parts[static_cast<std::size_t>(place.ranks.front())];
    TUTTI_ASSIGN_OR_RETURN(place.base, device.open_offered(part.offer, part.place.data()));
    place.opened = OpenedMemory(place.base, CloseMemory{&device});
  }
  return write_lists(place_of(ranks_here_.front()));
}

void BlockWorld::set_roll_call(std::unique_ptr<BlockRollCall> call) { roll_call_ = std::move(call); }

Result<std::uint64_t> BlockWorld::begin_joining(int rank, const Wish& wish) {
  formings_.emplace_back().joining = std::make_unique<BlockJoining>(*this, rank, wish, *roll_call_);
  return formed_[static_cast<std::size_t>(rank)]++;
}

Result<bool> BlockWorld::go_on_joining(Forming& forming) {
  if (forming.joining == nullptr) return true;
  TUTTI_RETURN_IF_ERROR(failed_);
  const Result<bool> joined = forming.joining->test();
  if (joined.status().code() == Code::aborted) return fail(joined.status());
  if (joined.is_ok() && !joined.value()) return false;
  forming.memberships.resize(static_cast<std::size_t>(ranks_));
  if (joined.is_ok()) forming.memberships[first_here()] = forming.joining->take();
  forming.status = joined.status();
  forming.joining = nullptr;
  return true;
}

}  // namespace tutti
