// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/block_world.h"

#include <algorithm>
#include <cstring>

#include "impl/communicator/block_joining.h"
#include "impl/communicator/diagnosis.h"
#include "impl/execute/packets.h"
#include "impl/execute/target.h"

namespace tutti {
namespace {

/// The words that the host looks at while ranks run. Each device has a failure of its own: several devices cannot
/// settle which of them was first.
struct Words {
  DeviceFailure failure;
  std::uint64_t abort;  ///< that of the first device is everybody's
};

/// The addresses of slabs and boards, then the devices of all ranks, and the ranks of a device.
std::size_t lists_bytes(const DeviceWorld& world) {
  const auto ranks = static_cast<std::size_t>(world.ranks), devices = static_cast<std::size_t>(world.devices);
  return (ranks + devices) * sizeof(std::byte*) + 2 * ranks * sizeof(int);
}

struct PlansOnDevice {
  DeviceMemory full;
  DeviceMemory tail;
};

Result<DeviceMemory> placed(Device& device, std::span<const std::byte> image) {
  if (image.empty()) return DeviceMemory();
  TUTTI_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::make(device, image.size()));
  TUTTI_RETURN_IF_ERROR(device.write(memory.get(), image.data(), image.size()));
  return memory;
}

}  // namespace

BlockWorld::BlockWorld(std::shared_ptr<Domain> domain, const Common& common)
    : domain_(std::move(domain)),
      common_(common),
      ranks_(domain_->shape().ranks),
      posted_(static_cast<std::size_t>(ranks_)),
      started_(static_cast<std::size_t>(ranks_)),
      captures_(static_cast<std::size_t>(ranks_)),
      formed_(static_cast<std::size_t>(ranks_)) {}

Result<std::shared_ptr<BlockWorld>> BlockWorld::make(std::shared_ptr<Domain> domain, const Common& common,
                                                     const std::vector<int>& device_of) {
  std::shared_ptr<BlockWorld> world(new BlockWorld(std::move(domain), common));
  TUTTI_RETURN_IF_ERROR(world->allocate(device_of));
  return world;
}

Status BlockWorld::allocate(const std::vector<int>& device_of) {
  for (int rank = 0; rank < ranks_; ++rank) {
    const int index = device_of[static_cast<std::size_t>(rank)];
    Device* const device = common_.devices[static_cast<std::size_t>(index)];
    auto at = std::ranges::find(places_, index, &Place::index);
    if (at == places_.end()) at = places_.insert(at, {.device = device, .index = index});
    at->ranks.push_back(rank);
    place_of_.push_back(static_cast<int>(at - places_.begin()));
    if (device != nullptr) ranks_here_.push_back(rank);
  }
  if (is_shared()) queue_ = common_.queues->take();
  for (Place& place : places_) {
    if (place.device == nullptr) continue;
    const auto ranks = static_cast<int>(place.ranks.size());
    TUTTI_RETURN_IF_ERROR(place.device->fits(ranks * common_.blocks.lanes, common_.blocks.threads));
    place.world = world_on(place);
  }
  common_.left->release();
  for (Place& place : places_) {
    if (place.device == nullptr) continue;
    const DeviceWorld& world = place.world;
    const std::size_t bytes = world.board_bytes() + place.ranks.size() * world.slab_bytes() + lists_bytes(world);
    const auto make = is_shared() ? DeviceMemory::make_for_processes : DeviceMemory::make;
    TUTTI_ASSIGN_OR_RETURN(place.memory, make(*place.device, bytes));
    TUTTI_ASSIGN_OR_RETURN(place.words, DeviceMemory::make_mapped(*place.device, sizeof(Words)));
    place.base = place.memory.get();
  }
  if (is_shared()) return {};
  for (Place& place : places_) TUTTI_RETURN_IF_ERROR(write_lists(place));
  return {};
}

DeviceWorld BlockWorld::world_on(const Place& place) const {
  const DomainShape& shape = domain_->shape();
  return {.ranks = ranks_,
          .lanes = common_.blocks.lanes,
          .generations = shape.generations,
          .slots = shape.slots,
          .scratch_bytes = (shape.scratch_bytes + kDeviceLine - 1) / kDeviceLine * kDeviceLine,
          .slot_bytes = shape.slot_bytes,
          .packet_bytes = most_packet_bytes(),
          .devices = static_cast<int>(places_.size()),
          .here = static_cast<int>(&place - places_.data())};
}

Status BlockWorld::write_lists(Place& place) {
  DeviceWorld& world = place.world;
  const auto slab_of = [&](int rank) {
    const Place& owner = place_of(rank);
    const auto index = std::ranges::find(owner.ranks, rank) - owner.ranks.begin();
    return owner.base + world.board_bytes() + static_cast<std::size_t>(index) * world.slab_bytes();
  };
  std::vector<std::byte*> addresses;  // of slabs, then of boards
  for (int rank = 0; rank < ranks_; ++rank) addresses.push_back(slab_of(rank));
  for (const Place& one : places_) addresses.push_back(one.base);
  std::vector<int> numbers = place_of_;
  numbers.insert(numbers.end(), place.ranks.begin(), place.ranks.end());
  std::byte* const lists = place.base + world.board_bytes() + place.ranks.size() * world.slab_bytes();
  std::byte* const behind = lists + addresses.size() * sizeof(std::byte*);
  TUTTI_RETURN_IF_ERROR(place.device->write(lists, addresses.data(), addresses.size() * sizeof(std::byte*)));
  TUTTI_RETURN_IF_ERROR(place.device->write(behind, numbers.data(), numbers.size() * sizeof(int)));
  world.slabs = reinterpret_cast<std::byte**>(lists);
  world.boards = world.slabs + ranks_;
  world.device_of = reinterpret_cast<const int*>(behind);
  place.ranks_there = world.device_of + ranks_;
  world.abort_word = &here().words.as<Words>()->abort;
  world.failure = &place.words.as<Words>()->failure;
  const LaneState first{.number = 0, .free_until = static_cast<std::uint64_t>(world.generations)};
  for (const int rank : place.ranks) {
    for (int lane = 0; lane < world.lanes; ++lane) {
      std::byte* const part = slab_of(rank) + static_cast<std::uint64_t>(lane) * world.lane_bytes();
      TUTTI_RETURN_IF_ERROR(place.device->write(part + world.ends_at(), &first, sizeof first));
    }
  }
  return {};
}

DeviceLaunch BlockWorld::launch_on(const Place& place, Dtype dtype, Op op) const {
  return {.world = place.world,
          .work = {.limits = {.timeout_ns = static_cast<std::uint64_t>(common_.options.timeout.count())}},
          .dtype = dtype,
          .op = op,
          .threads = common_.blocks.threads,
          .queue = queue_};
}

Status BlockWorld::launch_all(std::vector<Prepared> parts, Launched& launched) {
  launched.turn = ++turns_;
  const std::lock_guard lock(*common_.order);
  for (Prepared& one : parts) {
    const Result<Device::Ticket> ticket = one.part.place->device->launch(std::move(one.launch));
    if (!ticket.is_ok()) return told_of(*one.part.place, ticket.status());
    one.part.ticket = ticket.value();
    launched.parts.push_back(std::move(one.part));
  }
  return {};
}

Status BlockWorld::told_of(const Place& place, const Status& status) const {
  if (places_.size() == 1) return status;
  return error(status.code(), "device {}: {}", place.index, status.message());
}

Result<bool> BlockWorld::has_ended(const Launched& launched) {
  bool is_done = true;
  for (const Launched::Part& part : launched.parts) {  // all: one that has failed is why another one is not done
    const Result<bool> is_part_done = part.place->device->is_complete(part.ticket);
    if (!is_part_done.is_ok()) return fail(told_of(*part.place, is_part_done.status()));
    is_done = is_done && is_part_done.value();
  }
  if (!is_done || !have_stopped()) return is_done;
  const DeviceFailure* const failure = first_failure();
  if (failure == nullptr) return false;  // it is being written
  return has_ended_before(launched, *failure);
}

void BlockWorld::note(int rank, const BoundEntry& entry, std::uint64_t first) {
  Journal& journal = *domain_->seat(rank).journal;
  CallNote told = entry.note;
  told.first = first;
  if (entry.blocks && !entry.blocks->shared.empty()) {
    journal.counted.store(0, std::memory_order_relaxed);
    for (std::size_t block = 0; block < entry.blocks->shared.size(); ++block) {
      journal.counts()[block].store(entry.blocks->shared[block], std::memory_order_release);
    }
    journal.counted.store(first, std::memory_order_release);
  }
  const std::uint64_t index = journal.notes.load(std::memory_order_relaxed);
  journal.calls[index % Journal::kNotes].write(told);
  journal.notes.store(index + 1, std::memory_order_release);
}

Result<std::uint64_t> BlockWorld::post(int rank, const Posted& call) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
  TUTTI_RETURN_IF_ERROR(check_others());
  if (captures_[static_cast<std::size_t>(rank)].under_way == nullptr) {
    return enqueue(rank, call,
                   call.graph != nullptr ? call.graph->operations : static_cast<std::uint64_t>(call.entry->segments));
  }
  if (call.graph != nullptr) {
    return check_not_captured(rank, "what was captured before");
  }
  capture(rank, call);
  return std::uint64_t{0};
}

Result<std::uint64_t> BlockWorld::enqueue(int rank, const Posted& call, std::uint64_t operations) {
  const auto place = static_cast<std::size_t>(rank);
  const std::uint64_t number = posted_[place]++;
  while (number - first_round_ >= rounds_.size()) rounds_.emplace_back(ranks_);
  Round& one = round(number);
  const std::uint64_t first = started_[place] + 1;
  started_[place] += operations;
  if (one.count == 0) {
    one.first = first;
    one.operations = operations;
  }
  one.posted[place] = call;
  if (call.graph == nullptr) note(rank, *call.entry, first);
  const BoundEntry* before = nullptr;  // a note stands for all operations until the next one
  for (std::size_t i = 0; call.graph != nullptr && i < call.graph->rounds.size(); ++i) {
    const Round& captured = call.graph->rounds[i];
    const BoundEntry* const entry = captured.posted[place].entry;
    if (entry != before) note(rank, *entry, first + captured.first);
    before = entry;
  }
  if (++one.count == static_cast<int>(ranks_here_.size())) TUTTI_RETURN_IF_ERROR(launch(one));
  return number;
}

Result<std::shared_ptr<const void>> BlockWorld::place_plans(Device& device, BoundEntry& entry) {
  if (entry.on_device != nullptr) return entry.on_device;
  auto plans = std::make_shared<PlansOnDevice>();
  TUTTI_ASSIGN_OR_RETURN(plans->full, placed(device, std::as_bytes(entry.call.full.block())));
  TUTTI_ASSIGN_OR_RETURN(plans->tail, placed(device, std::as_bytes(entry.call.tail.block())));
  entry.on_device = std::move(plans);
  return entry.on_device;
}

Result<BlockWorld::Prepared> BlockWorld::prepare(Place& place, std::span<const Round* const> rounds) {
  const PlanHeader& header = first_of(*rounds.front()).entry->call.plan(0).header();
  Prepared prepared;
  prepared.part.place = &place;
  prepared.launch = launch_on(place, header.dtype, header.op);
  DeviceLaunch& launch = prepared.launch;
  std::vector<DeviceCall> calls;
  for (const Round* const one : rounds) {
    for (const int rank : place.ranks) {
      const Posted& posted = one->posted[static_cast<std::size_t>(rank)];
      BoundEntry& entry = *posted.entry;
      TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<const void> resident, place_plans(*place.device, entry));
      const auto& plans = *static_cast<const PlansOnDevice*>(resident.get());
      DeviceCall call{.full = PlanView(plans.full.get()),
                      .tail = PlanView(plans.tail.get()),
                      .input = posted.input,
                      .output = posted.output,
                      .segment_bytes = entry.call.segment_bytes,
                      .full_segments = entry.call.full_segments,
                      .segments = entry.segments,
                      .by_packets = one->by_packets};
      std::memcpy(&call.factor, posted.factor.data(), sizeof call.factor);
      calls.push_back(call);
      if (entry.kernel_context == nullptr && launch.replaced.empty()) continue;
      launch.replaced.resize(place.ranks.size(), {.kernel = kernel_for(header.dtype, header.op), .scale = entry.scale});
      if (entry.kernel_context == nullptr) continue;
      launch.replaced[calls.size() - 1] = {.kernel = entry.kernel, .scale = entry.scale, .context = entry.kernel_context};
    }
  }
  const auto image = std::as_bytes(std::span(calls));
  if (rounds.size() > 1 || place.spare.empty()) {
    TUTTI_ASSIGN_OR_RETURN(prepared.part.memory, DeviceMemory::make(*place.device, image.size()));
  } else {
    prepared.part.memory = std::move(place.spare.back());
    place.spare.pop_back();
  }
  TUTTI_RETURN_IF_ERROR(place.device->write(prepared.part.memory.get(), image.data(), image.size()));
  launch.work.calls = prepared.part.memory.as<DeviceCall>();
  launch.work.ranks = places_.size() == 1 ? nullptr : place.ranks_there;
  launch.work.parties = static_cast<int>(place.ranks.size());
  launch.work.operations = static_cast<int>(rounds.size());
  return prepared;
}

std::uint64_t BlockWorld::most_packet_bytes() const {
  return is_shared() ? 0 : static_cast<std::uint64_t>(common_.blocks.packet_bytes);
}

bool BlockWorld::goes_by_packets(const Round& one) const {
  if (is_shared()) return false;
  const std::int64_t most = common_.blocks.packet_bytes;
  const BoundCall& first = one.posted.front().entry->call;
  const auto is_same = [&](const Plan& mine, const Plan& others) {
    const auto form = packet_form(mine, most);
    return form.has_value() && form == packet_form(others, most);
  };
  return std::ranges::all_of(one.posted, [&](const Posted& posted) {
    const BoundCall& call = posted.entry->call;
    return posted.entry->kernel_context == nullptr && call.segments() > 0 &&
           (call.full_segments == 0 || is_same(call.full, first.full)) &&
           (!call.has_tail || is_same(call.tail, first.tail));
  });
}

Status BlockWorld::launch(Round& one) {
  const Posted& front = first_of(one);
  const int first = ranks_here_.front();
  for (const int rank : ranks_here_) {
    const Posted& posted = one.posted[static_cast<std::size_t>(rank)];
    if (posted.graph == front.graph) continue;
    return fail(error(Code::mismatch, "{} and {} do not agree on operation {}: {}, and {}", domain_->name_of(first),
                      domain_->name_of(rank), one.first, text_of(front, one.first), text_of(posted, one.first)));
  }
  if (front.graph != nullptr) return fail_unless_ok(launch(*front.graph, one.launched));
  for (const int rank : ranks_here_) {
    if (one.posted[static_cast<std::size_t>(rank)].entry->note.hash == front.entry->note.hash) continue;
    const auto text = disagreement(*domain_, first, rank);
    return fail(error(Code::mismatch, "{}",
                      text ? *text
                           : fmt::format("{} and {} do not agree on operation {}", domain_->name_of(first),
                                         domain_->name_of(rank), one.first)));
  }
  one.by_packets = goes_by_packets(one);
  std::vector<Prepared> parts;
  for (Place& place : places_) {
    if (place.device == nullptr) continue;
    const Round* const alone = &one;
    Result<Prepared> part = prepare(place, {&alone, 1});
    if (!part.is_ok()) return fail(told_of(place, part.status()));
    parts.push_back(std::move(part).value());
  }
  one.launched.number = ++launches_;
  return fail_unless_ok(launch_all(std::move(parts), one.launched));
}

void BlockWorld::keep_memory(Launched& launched) {
  for (Launched::Part& part : launched.parts) {
    if (part.memory.get() != nullptr) part.place->spare.push_back(std::move(part.memory));
  }
}

Status BlockWorld::progress() {
  while (!rounds_.empty() && !rounds_.front().launched.parts.empty()) {
    const Round& front = rounds_.front();
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, has_ended(front.launched));
    if (!is_done) break;
    for (const int rank : ranks_here_) {
      domain_->seat(rank).journal->finished.store(front.first + front.operations - 1, std::memory_order_release);
    }
    keep_memory(rounds_.front().launched);
    rounds_.pop_front();
    ++first_round_;
    if (rounds_.empty()) common_.left->release();
  }
  for (auto& [ranks, pair] : pairs_) {
    while (!pair.under_way.empty()) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, has_ended(pair.under_way.front().launched));
      if (!is_done) break;
      pair.under_way.pop_front();
      ++pair.complete;
    }
  }
  return check_others();
}

Result<bool> BlockWorld::is_complete(int /*rank*/, std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  if (call < first_round_) return true;
  TUTTI_RETURN_IF_ERROR(failed_);
  return false;
}

bool BlockWorld::is_idle(int rank) {
  const std::lock_guard lock(mutex_);
  const Captures& captures = captures_[static_cast<std::size_t>(rank)];
  return posted_[static_cast<std::size_t>(rank)] <= first_round_ && captures.under_way == nullptr && captures.kept == 0;
}

Status BlockWorld::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace tutti
