// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/block_world.h"

#include <algorithm>
#include <cstring>

#include "impl/communicator/diagnosis.h"
#include "impl/execute/target.h"

namespace tutti {
namespace {

/// The words that the host looks at while ranks run.
struct Words {
  DeviceFailure failure;
  std::uint64_t abort;
};

struct PlansOnDevice {
  DeviceMemory full;
  DeviceMemory tail;
};

Result<DeviceMemory> placed(Device& device, std::span<const std::uint64_t> block) {
  if (block.empty()) return DeviceMemory();
  TUTTI_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::make(device, block.size_bytes()));
  TUTTI_RETURN_IF_ERROR(device.write(memory.get(), block.data(), block.size_bytes()));
  return memory;
}

}  // namespace

BlockWorld::BlockWorld(std::shared_ptr<Domain> domain, const Common& common)
    : domain_(std::move(domain)),
      common_(common),
      ranks_(domain_->shape().ranks),
      posted_(static_cast<std::size_t>(ranks_)),
      started_(static_cast<std::size_t>(ranks_)),
      formed_(static_cast<std::size_t>(ranks_)) {}

Result<std::shared_ptr<BlockWorld>> BlockWorld::make(std::shared_ptr<Domain> domain, const Common& common) {
  std::shared_ptr<BlockWorld> world(new BlockWorld(std::move(domain), common));
  TUTTI_RETURN_IF_ERROR(world->allocate());
  return world;
}

BlockWorld::~BlockWorld() = default;

Status BlockWorld::allocate() {
  const DomainShape& shape = domain_->shape();
  Device& device = common_.device;
  TUTTI_RETURN_IF_ERROR(device.fits(ranks_ * common_.blocks.lanes, common_.blocks.threads));
  device_world_ = {.ranks = ranks_,
                   .lanes = common_.blocks.lanes,
                   .generations = shape.generations,
                   .slots = shape.slots,
                   .scratch_bytes = (shape.scratch_bytes + kDeviceLine - 1) / kDeviceLine * kDeviceLine,
                   .slot_bytes = shape.slot_bytes};
  const std::size_t slab = device_world_.slab_bytes();
  const auto count = static_cast<std::size_t>(ranks_);
  TUTTI_ASSIGN_OR_RETURN(slabs_, DeviceMemory::make(device, count * slab));
  TUTTI_ASSIGN_OR_RETURN(slab_list_, DeviceMemory::make(device, count * sizeof(std::byte*)));
  TUTTI_ASSIGN_OR_RETURN(words_, DeviceMemory::make_mapped(device, sizeof(Words)));
  std::vector<std::byte*> slabs(count);
  std::vector<std::byte> state(sizeof(LaneState));
  const LaneState first{.number = 0, .free_until = static_cast<std::uint64_t>(shape.generations)};
  for (std::size_t rank = 0; rank < count; ++rank) slabs[rank] = slabs_.get() + rank * slab;
  device_world_.slabs = slab_list_.as<std::byte*>();
  TUTTI_RETURN_IF_ERROR(device.write(slab_list_.get(), slabs.data(), count * sizeof(std::byte*)));
  for (std::byte* const begin : slabs) {
    for (int lane = 0; lane < device_world_.lanes; ++lane) {
      std::byte* const part = begin + static_cast<std::uint64_t>(lane) * device_world_.lane_bytes();
      TUTTI_RETURN_IF_ERROR(device.write(part + device_world_.ends_at(), &first, sizeof first));
    }
  }
  device_world_.failure = &words_.as<Words>()->failure;
  device_world_.abort_word = &words_.as<Words>()->abort;
  return {};
}

DeviceWork BlockWorld::next_work(const DeviceCall* calls, int parties) {
  return {.calls = calls,
          .parties = parties,
          .number = ++launches_,
          .limits = {.timeout_ns = static_cast<std::uint64_t>(common_.options.timeout.count())}};
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
  const auto place = static_cast<std::size_t>(rank);
  const std::uint64_t number = posted_[place]++;
  while (number - first_round_ >= rounds_.size()) {
    rounds_.emplace_back().posted.resize(static_cast<std::size_t>(ranks_));
  }
  Round& one = round(number);
  const std::uint64_t first = started_[place] + 1;
  started_[place] += static_cast<std::uint64_t>(call.entry->segments);
  if (one.count == 0) one.first = first;
  one.posted[place] = call;
  note(rank, *call.entry, first);
  if (++one.count == ranks_) TUTTI_RETURN_IF_ERROR(launch(one));
  return number;
}

Result<std::shared_ptr<const void>> BlockWorld::place_plans(BoundEntry& entry) {
  if (entry.on_device != nullptr) return entry.on_device;
  auto plans = std::make_shared<PlansOnDevice>();
  TUTTI_ASSIGN_OR_RETURN(plans->full, placed(common_.device, entry.call.full.block()));
  TUTTI_ASSIGN_OR_RETURN(plans->tail, placed(common_.device, entry.call.tail.block()));
  entry.on_device = std::move(plans);
  return entry.on_device;
}

Status BlockWorld::launch(Round& one) {
  const BoundEntry& first = *one.posted.front().entry;
  const PlanHeader& header = first.call.plan(0).header();
  DeviceLaunch launch{
      .world = device_world_, .dtype = header.dtype, .op = header.op, .threads = common_.blocks.threads};
  std::vector<DeviceCall> calls;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Posted& posted = one.posted[static_cast<std::size_t>(rank)];
    BoundEntry& entry = *posted.entry;
    if (entry.note.hash != first.note.hash) {
      const auto text = disagreement(*domain_, 0, rank);
      return fail(error(Code::mismatch, "{}",
                        text ? *text
                             : fmt::format("{} and {} do not agree on operation {}", domain_->name_of(0),
                                           domain_->name_of(rank), one.first)));
    }
    const Result<std::shared_ptr<const void>> resident = place_plans(entry);
    if (!resident.is_ok()) return fail(resident.status());
    const auto& plans = *static_cast<const PlansOnDevice*>(resident.value().get());
    DeviceCall call{.full = PlanView(plans.full.get()),
                    .tail = PlanView(plans.tail.get()),
                    .input = posted.input,
                    .output = posted.output,
                    .segment_bytes = entry.call.segment_bytes,
                    .full_segments = entry.call.full_segments,
                    .segments = entry.segments};
    std::memcpy(&call.factor, posted.factor.data(), sizeof call.factor);
    calls.push_back(call);
    if (entry.kernel_context == nullptr && launch.replaced.empty()) continue;
    launch.replaced.resize(static_cast<std::size_t>(ranks_),
                           {.kernel = kernel_for(header.dtype, header.op), .scale = entry.scale});
    if (entry.kernel_context == nullptr) continue;
    launch.replaced[static_cast<std::size_t>(rank)] = {
        .kernel = entry.kernel, .scale = entry.scale, .context = entry.kernel_context};
  }
  const std::size_t bytes = calls.size() * sizeof(DeviceCall);
  Result<DeviceMemory> memory = DeviceMemory::make(common_.device, bytes);
  if (!memory.is_ok()) return fail(memory.status());
  one.calls = std::move(memory).value();
  TUTTI_RETURN_IF_ERROR(fail_unless_ok(common_.device.write(one.calls.get(), calls.data(), bytes)));
  launch.work = next_work(one.calls.as<DeviceCall>(), ranks_);
  one.launch = launch.work.number;
  const Result<Device::Ticket> ticket = common_.device.launch(std::move(launch));
  if (!ticket.is_ok()) return fail(ticket.status());
  one.ticket = ticket.value();
  return {};
}

Status BlockWorld::progress() {
  while (!rounds_.empty() && rounds_.front().ticket != 0) {
    const Round& front = rounds_.front();
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, common_.device.is_complete(front.ticket));
    if (!is_done) break;
    if (has_failed_in(front.launch)) return fail_in(front);
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t last = front.first + static_cast<std::uint64_t>(front.posted.front().entry->segments) - 1;
      domain_->seat(rank).journal->finished.store(last, std::memory_order_release);
    }
    rounds_.pop_front();
    ++first_round_;
  }
  for (auto& [ranks, pair] : pairs_) {
    while (!pair.under_way.empty()) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, common_.device.is_complete(pair.under_way.front().ticket));
      if (!is_done) break;
      if (has_failed_in(pair.under_way.front().launch)) return fail_in(pair.under_way.front());
      pair.under_way.pop_front();
      ++pair.complete;
    }
  }
  return {};
}

bool BlockWorld::has_failed_in(std::uint64_t launch) const {
  DeviceFailure& failure = *device_world_.failure;
  return HostTarget::load_acquire(&failure.kind) != DeviceFailure::none && failure.launch == launch;
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
  return posted_[static_cast<std::size_t>(rank)] <= first_round_;
}

Status BlockWorld::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace tutti
