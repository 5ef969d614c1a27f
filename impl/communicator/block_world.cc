// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/block_world.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

#include "impl/communicator/diagnosis.h"
#include "impl/execute/target.h"
#include "impl/execute/transfers.h"
#include "impl/transports/group_domain.h"

namespace tutti {
namespace {

/// Teams that are to stop do so at their next wait: that is soon, unless the device has failed.
constexpr std::chrono::seconds kMostToStop(60);

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

/// What one end of a message does: slice by slice into the channel to the peer, or out of the one from it. Of a message
/// to itself a rank's one copy.
Plan plan_of(const BlockWorld::Message& message, int ranks, std::int64_t slot_bytes) {
  const bool is_to_itself = message.rank == message.peer;
  std::vector<PlanOp> ops;
  std::vector<PlanOperand> operands;
  const PlanOperand channel{.ranks = only(message.peer), .space = Space::channel};
  std::int64_t done = 0;
  do {
    const std::int64_t rest = message.bytes - done;
    const std::int64_t bytes = is_to_itself ? rest : std::min(rest, slot_bytes);
    const PlanOperand mine{.offset = done,
                           .ranks = only(message.rank),
                           .space = message.is_send ? Space::input : Space::output,
                           .is_mine = true};
    PlanOp op{.destinations = 1, .sources = 1, .first_operand = static_cast<std::uint32_t>(operands.size())};
    op.bytes = bytes;
    if (is_to_itself) {
      operands.push_back({.ranks = only(message.rank), .space = Space::output, .is_mine = true});
      operands.push_back({.ranks = only(message.rank), .space = Space::input, .is_mine = true});
    } else {
      op.marks = mark_opens | mark_closes;
      op.has_channel = 1;
      op.rest_bytes = rest;
      operands.push_back(message.is_send ? channel : mine);
      operands.push_back(message.is_send ? mine : channel);
    }
    ops.push_back(op);
    done += bytes;
  } while (done < message.bytes);
  const PlanHeader header{.rank = message.rank,
                          .ranks = ranks,
                          .ops = static_cast<std::uint32_t>(ops.size()),
                          .operands = static_cast<std::uint32_t>(operands.size()),
                          .dtype = message.dtype,
                          .uses_channels = !is_to_itself};
  return {header, ops, operands, {}};
}

/// Who sends to whom.
std::pair<int, int> ends_of(const BlockWorld::Message& message) {
  return message.is_send ? std::pair(message.rank, message.peer) : std::pair(message.peer, message.rank);
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

Result<std::uint64_t> BlockWorld::post(const Message& message) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
  Pair& pair = pairs_[ends_of(message)];
  (message.is_send ? pair.sends : pair.receives).push_back(message);
  const std::uint64_t number = pair.posted[message.is_send ? 1 : 0]++;
  if (!pair.sends.empty() && !pair.receives.empty()) TUTTI_RETURN_IF_ERROR(launch_pair(pair));
  return number;
}

Status BlockWorld::launch_pair(Pair& pair) {
  const Message send = pair.sends.front();
  const Message receive = pair.receives.front();
  if (send.bytes != receive.bytes || send.dtype != receive.dtype) {
    return fail(error_of({.number = pair.complete + pair.under_way.size() + 1,
                          .sender = domain_->name_of(send.rank),
                          .receiver = domain_->name_of(receive.rank),
                          .sent = {.bytes = send.bytes, .dtype = send.dtype},
                          .expected = {.bytes = receive.bytes, .dtype = receive.dtype}}));
  }
  pair.sends.pop_front();
  pair.receives.pop_front();
  const bool is_to_itself = send.rank == send.peer;
  const auto slot_bytes = static_cast<std::int64_t>(device_world_.slot_bytes);
  const std::array plans{plan_of(send, ranks_, slot_bytes), plan_of(receive, ranks_, slot_bytes)};
  const std::array ranks{send.rank, receive.rank};
  // Calls, plans and the ranks' numbers lie in one piece.
  const int parties = is_to_itself ? 1 : 2;
  std::vector<std::byte> image(2 * sizeof(DeviceCall));
  std::array<std::size_t, 2> plan_at{};
  for (int i = 0; i < parties; ++i) {
    plan_at[static_cast<std::size_t>(i)] = image.size();
    const auto block = std::as_bytes(plans[static_cast<std::size_t>(i)].block());
    image.insert(image.end(), block.begin(), block.end());
  }
  const std::size_t ranks_at = image.size();
  const auto numbers = std::as_bytes(std::span(ranks));
  image.insert(image.end(), numbers.begin(), numbers.end());
  Result<DeviceMemory> memory = DeviceMemory::make(common_.device, image.size());
  if (!memory.is_ok()) return fail(memory.status());
  std::byte* const base = memory.value().get();
  for (int i = 0; i < parties; ++i) {
    const DeviceCall call{.tail = PlanView(base + plan_at[static_cast<std::size_t>(i)]),
                          .input = i == 0 ? send.buffer : nullptr,
                          .output = i == 1 || is_to_itself ? receive.buffer : nullptr,
                          .segments = 1};
    std::memcpy(image.data() + static_cast<std::size_t>(i) * sizeof call, &call, sizeof call);
  }
  TUTTI_RETURN_IF_ERROR(fail_unless_ok(common_.device.write(base, image.data(), image.size())));
  DeviceLaunch launch{.world = device_world_,
                      .work = next_work(reinterpret_cast<const DeviceCall*>(base), parties),
                      .dtype = send.dtype,
                      .threads = common_.blocks.threads};
  launch.work.ranks = reinterpret_cast<const int*>(base + ranks_at);
  launch.work.is_transfer = true;
  const Result<Device::Ticket> ticket = common_.device.launch(std::move(launch));
  if (!ticket.is_ok()) return fail(ticket.status());
  pair.under_way.push_back({.send = send,
                            .receive = receive,
                            .launch = launches_,
                            .ticket = ticket.value(),
                            .memory = std::move(memory).value()});
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

Status BlockWorld::fail_in(const Round& round) {
  const DeviceFailure& failure = *device_world_.failure;
  const int rank = static_cast<int>(failure.rank), peer = static_cast<int>(failure.peer);
  const std::string mine = domain_->name_of(rank), theirs = domain_->name_of(peer);
  if (failure.kind == DeviceFailure::other_call) {
    const auto text = disagreement(*domain_, rank, peer);
    return fail(error(Code::mismatch, "{}",
                      text ? *text : fmt::format("{} and {} do not agree on operation {}", mine, theirs, round.first)));
  }
  if (failure.kind == DeviceFailure::other_length) {
    return fail(error(Code::mismatch,
                      "{} and {} do not agree on operation {}, on a count: {} sends {} bytes, {} expects {}", mine,
                      theirs, round.first, theirs, failure.found, mine, failure.wanted));
  }
  Standing standing{.operation = round.first + failure.segment,
                    .finished = round.first - 1,
                    .bytes = static_cast<std::int64_t>(failure.wanted),
                    .peer = peer,
                    .step = static_cast<std::int32_t>(failure.step) + 1,
                    .phase = static_cast<std::uint16_t>(failure.wanted)};
  standing.wait = failure.kind == DeviceFailure::phase  ? Wait::phase
                  : failure.kind == DeviceFailure::data ? Wait::data
                  : failure.kind == DeviceFailure::room ? Wait::room
                                                        : Wait::generation;
  CallNote note = round.posted[static_cast<std::size_t>(rank)].entry->note;
  note.first = round.first;
  return fail_late(rank, standing, &note);
}

Status BlockWorld::fail_in(const Transfer& transfer) {
  const DeviceFailure& failure = *device_world_.failure;
  const bool is_send = failure.kind == DeviceFailure::room;
  const Message& mine = is_send ? transfer.send : transfer.receive;
  return fail_late(mine.rank,
                   {.bytes = mine.bytes,
                    .done = mine.bytes - static_cast<std::int64_t>(failure.wanted),
                    .peer = mine.peer,
                    .wait = is_send ? Wait::send : Wait::receive,
                    .dtype = mine.dtype,
                    .is_begun = true},
                   nullptr);
}

Status BlockWorld::fail_late(int rank, const Standing& standing, const CallNote* note) {
  domain_->seat(rank).journal->standing.write(standing);
  const std::string position = standing_text(*domain_, standing, note);
  return fail(error(Code::timeout, "{} gave up: {}, lane {}{}", domain_->name_of(rank), position,
                    device_world_.failure->lane, report_of(*domain_)));
}

Status BlockWorld::fail(Status status) {
  if (!failed_.is_ok()) return failed_;
  failed_ = std::move(status);
  HostTarget::store_release(device_world_.abort_word, stop_now);
  wait_for_launches();
  return failed_;
}

bool BlockWorld::has_launches() const {
  return (!rounds_.empty() && rounds_.front().ticket != 0) ||
         std::ranges::any_of(pairs_, [](const auto& one) { return !one.second.under_way.empty(); });
}

void BlockWorld::wait_for_launches() {
  const Clock::time_point deadline = Clock::now() + kMostToStop;
  const auto wait_for = [&](Device::Ticket ticket) {
    while (Clock::now() < deadline) {
      const Result<bool> is_done = common_.device.is_complete(ticket);
      if (!is_done.is_ok() || is_done.value()) return;
      sched_yield();
    }
  };
  for (const Round& one : rounds_) {
    if (one.ticket != 0) wait_for(one.ticket);
  }
  for (const auto& [ranks, pair] : pairs_) {
    for (const Transfer& one : pair.under_way) wait_for(one.ticket);
  }
}

Result<bool> BlockWorld::is_complete(int /*rank*/, std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  if (call < first_round_) return true;
  TUTTI_RETURN_IF_ERROR(failed_);
  return false;
}

Result<bool> BlockWorld::is_complete(const Message& message, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  if (number < pairs_[ends_of(message)].complete) return true;
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

std::string BlockWorld::position(int rank, std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  if (call < first_round_) return "complete";
  const Round& one = round(call);
  const BoundEntry& entry = *one.posted[static_cast<std::size_t>(rank)].entry;
  CallNote note = entry.note;
  note.first = one.first;
  const std::string text = fmt::format("operation {} ({})", one.first, call_text(note, one.first));
  for (int peer = 0; peer < ranks_; ++peer) {
    if (one.posted[static_cast<std::size_t>(peer)].entry != nullptr) continue;
    return fmt::format("{}: waits for {} to call it", text, domain_->name_of(peer));
  }
  return fmt::format("{}: the device is at it", text);
}

std::string BlockWorld::position(const Message& message, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Pair& pair = pairs_[ends_of(message)];
  if (number < pair.complete) return "complete";
  const std::deque<Message>& alone = message.is_send ? pair.sends : pair.receives;
  const std::uint64_t first = pair.posted[message.is_send ? 1 : 0] - alone.size();
  const bool is_alone = number >= first;
  const Transfer* const both = is_alone ? nullptr : &pair.under_way[number - pair.complete];
  const Message& posted = is_alone ? alone[number - first] : message.is_send ? both->send : both->receive;
  const Standing standing{.bytes = posted.bytes,
                          .before = number - pair.complete,
                          .peer = posted.peer,
                          .wait = posted.is_send ? Wait::send : Wait::receive,
                          .dtype = posted.dtype,
                          .is_begun = !is_alone};
  return standing_text(*domain_, standing, nullptr);
}

std::string BlockWorld::report() {
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::uint64_t finished = domain_->seat(rank).journal->finished.load(std::memory_order_relaxed);
    if (posted_[static_cast<std::size_t>(rank)] <= first_round_) continue;
    domain_->seat(rank).journal->standing.write({.operation = finished + 1, .finished = finished});
  }
  return report_of(*domain_);
}

void BlockWorld::end_launches() {
  const std::lock_guard lock(mutex_);
  if (!failed_.is_ok() || !has_launches()) return;
  HostTarget::store_release(device_world_.abort_word, stop_and_tell);
  wait_for_launches();
  (void)progress();
  if (failed_.is_ok()) HostTarget::store_release(device_world_.abort_word, keep_going);
}

Status BlockWorld::give_up(int rank, const std::string& position) {
  const std::string everybody = report();
  const std::lock_guard lock(mutex_);
  if (!failed_.is_ok()) return failed_;
  std::uint64_t first = 0;
  domain_->abort_line().word.compare_exchange_strong(first, static_cast<std::uint64_t>(rank) + 1);
  return fail(error(Code::timeout, "{} gave up: {}{}", domain_->name_of(rank), position, everybody));
}

void BlockWorld::leave(int rank) {
  const std::lock_guard lock(mutex_);
  if (failed_.is_ok()) (void)progress();
  const bool is_busy =
      posted_[static_cast<std::size_t>(rank)] > first_round_ || std::ranges::any_of(pairs_, [rank](const auto& one) {
        const auto& [ranks, pair] = one;
        return (ranks.first == rank && pair.posted[1] > pair.complete) ||
               (ranks.second == rank && pair.posted[0] > pair.complete);
      });
  if (is_busy) (void)fail(error(Code::aborted, "{} has left", domain_->name_of(rank)));
  domain_->seat(rank).journal->has_left.store(1, std::memory_order_release);
}

Result<std::uint64_t> BlockWorld::form(int rank, const Wish& wish) {
  const std::lock_guard lock(mutex_);
  TUTTI_RETURN_IF_ERROR(failed_);
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
    std::vector<int> world_ranks;
    for (const int rank : ranks) world_ranks.push_back(domain_->world_rank(rank));
    auto domain = std::make_shared<GroupDomain>(domain_->world(), std::move(world_ranks), shape, std::move(memory));
    TUTTI_ASSIGN_OR_RETURN(auto world, make(std::move(domain), common_));
    for (int place = 0; const int rank : ranks)
      memberships[static_cast<std::size_t>(rank)] = {.world = world, .rank = place++};
  }
  forming.memberships = std::move(memberships);
  return {};
}

Result<bool> BlockWorld::is_formed(int rank, std::uint64_t formation) {
  const std::lock_guard lock(mutex_);
  (void)rank;
  const Forming& forming = formings_[formation];
  if (forming.count < ranks_) {
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
