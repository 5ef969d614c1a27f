// SPDX-License-Identifier: Apache-2.0
// How calls are posted, started and walked.
#include <algorithm>
#include <limits>
#include <sched.h>

#include "impl/communicator/engine.h"
#include "impl/communicator/requests.h"

namespace tutti {
namespace {

constexpr unsigned kLooksBetweenIdleLinks = 16;
// Some looks of a spinning wait take microseconds. One that yields has given the core to the other ranks meanwhile.
constexpr std::chrono::microseconds kSpinningGap(500), kYieldingGap(4000);

void tell_costs(CompletionLine& line, std::uint64_t plan, const StoreCosts& costs) {
  for (std::size_t way = 0; way < costs.size(); ++way) line.costs[way].store(costs[way], std::memory_order_relaxed);
  line.trial.store(plan, std::memory_order_relaxed);
}

}  // namespace

Engine::Engine(Domain& domain, int rank, const Common& common)
    : domain_(domain),
      bell_(domain.doorbell()),
      rank_(rank),
      ranks_(domain.shape().ranks),
      generations_(static_cast<std::uint64_t>(domain.shape().generations)),
      options_(common.options),
      hooks_(common.hooks),
      company_(common.company),
      network_(domain.network()),
      machine_(domain, rank),
      transfers_(domain, rank),
      binder_({.domain = domain, .rank = rank}, options_, hooks_.after_bind),
      journal_(*domain.seat(rank).journal),
      ring_(16),
      ring_mask_(ring_.size() - 1),
      operations_(generations_),
      free_until_(generations_),
      heard_until_(generations_),
      crowd_(common.options.waiting == Waiting::spin ? kSpinningGap : kYieldingGap) {
  TUTTI_ASSERT(generations_ >= 2, "{} generations: at least 2", generations_);
  behind_link_.operation.store(std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
  for (int peer = 0; peer < ranks_; ++peer) {
    lines_.push_back(machine_.is_behind_link(peer) ? &behind_link_ : domain.seat(peer).completion);
  }
  if (options_.processes != nullptr) {
    std::vector<int> processes;
    for (int peer = 0; peer < ranks_; ++peer) {
      processes.push_back(options_.processes->at(static_cast<std::size_t>(domain.world_rank(peer))));
    }
    machine_.set_processes(std::move(processes));
  }
  company_->push_back(this);
}

Engine::Engine(std::unique_ptr<Domain> domain, int rank, const Common& common) : Engine(*domain, rank, common) {
  own_domain_ = std::move(domain);
}

Engine::~Engine() {
  hear_of_losses();  // who has lost a rank has no long goodbyes
  // What was told is owed to the others: they may wait for it, or leave another communicator of theirs and wait there.
  for (const auto end = Clock::now() + options_.timeout; failed_.is_ok() && !is_drained();) {
    progress_others();
    move_links();
    if (Clock::now() > end) break;
    sched_yield();
  }
  std::erase(*company_, this);
  if (is_busy()) (void)fail(error(Code::aborted, "{} has left", domain_.name_of(rank_)));
  journal_.finished.store(completed_, std::memory_order_release);
  journal_.has_left.store(1, std::memory_order_release);
}

inline Status Engine::accept(const Call& call) {
  const PlanCache::Key key = PlanCache::key_of(call);
  const bool has_factor = call.op == Op::premul_sum;  // which may be another each time
  return is_last(call, key) && !has_factor ? Status() : accept_new(call, key);
}

inline void Engine::enqueue() {
  append({.entry = last_.entry, .input = last_.input, .output = last_.output, .factor = last_.factor});
}

inline void Engine::append(const Pending& call) {
  if (next_ - first_ > ring_mask_) [[unlikely]]
    grow();
  pending(next_++) = call;
  since_all_ = call.entry->schedule.synchronises ? 0 : since_all_ + static_cast<std::uint64_t>(call.entry->segments);
}

Status Engine::put_fence() {
  if (!last_.entry->needs_fence || since_all_ < generations_ / 2) return {};
  if (fence_ == nullptr) {
    const Problem problem{.collective = Collective::all_reduce, .ranks = ranks_, .ranks_per_host = ranks_per_host()};
    TUTTI_ASSIGN_OR_RETURN(const Algorithm* const algorithm, find_algorithm(problem.collective, "recursive_doubling"));
    fence_ = std::make_unique<Schedule>(schedule_of(*algorithm, problem));
  }
  const Call call{.collective = Collective::all_reduce,
                  .dtype = Dtype::i32,
                  .op = Op::sum,
                  .count = 1,
                  .input = &fenced_[0],
                  .output = &fenced_[1],
                  .schedule = fence_.get()};
  PlanCache::Key key = PlanCache::key_of(call);
  BoundEntry* entry = binder_.find(call, key);
  if (entry == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(entry, bind(call, key));
  }
  append({.entry = entry,
          .input = reinterpret_cast<const std::byte*>(&fenced_[0]),
          .output = reinterpret_cast<std::byte*>(&fenced_[1])});
  return {};
}

void Engine::grow() {
  std::vector<Pending> wider(2 * ring_.size());
  for (std::uint64_t ticket = first_; ticket < next_; ++ticket) wider[ticket & (wider.size() - 1)] = pending(ticket);
  ring_ = std::move(wider);
  ring_mask_ = ring_.size() - 1;
}

/// Operation s may write generation s mod K once every rank has completed s - K. The least that the ranks have said is
/// remembered and read anew only when it is too old, about once in K operations.
inline bool Engine::generation_is_free(std::uint64_t number) {
  if (number <= free_until_) [[likely]]
    return true;
  std::uint64_t least = completed_;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_)
      least = std::min(least, lines_[static_cast<std::size_t>(peer)]->operation.load(std::memory_order_acquire));
  }
  free_until_ = std::max(free_until_, least + generations_);
  return number <= free_until_;
}

/// An operation that waits for everybody starts when the one K/2 before it is complete here. So to have heard everybody
/// in operation s is to know that s - K/2 is complete everywhere, and s + K/2 has its generation. Such operations tell
/// nobody that they are complete, and read nothing.
bool Engine::may_start(const PlanHeader& header, std::uint64_t number) {
  if (in_flight_ > 0) {
    const std::uint64_t depth = header.synchronises ? generations_ / 2 : generations_;
    if (number > completed_ + depth) return false;
    if (header.uses_channels && channels_are_taken_) return false;
  }
  return !header.uses_generation || generation_is_free(number);
}

bool Engine::start_next() {
  if (starting_ == next_) return false;
  Pending& call = pending(starting_);
  if (call.is_walking) return false;
  BoundEntry& entry = *call.entry;
  const PlanView plan = entry.call.plan(call.segment).view();
  const std::uint64_t number = completed_ + in_flight_ + 1;
  if (!may_start(plan.header(), number) || (entry.needs_fence && number > heard_until_) || is_held_back()) return false;
  const bool chooses_stores = plan.header().scratch_bytes >= kLeastChosenBytes;
  Operation& started = operation(number);
  started = {.number = number,
             .ticket = starting_,
             .plan = plan,
             .streams_staging = chooses_stores && entry.stores.streams(),
             .start = chooses_stores && entry.stores.is_trial() ? Clock::now() : Clock::time_point()};
  channels_are_taken_ |= plan.header().uses_channels;
  ++in_flight_;
  call.is_walking = true;
  prepare_machine(started);
  if (call.segment + 1 == entry.segments) ++starting_;
  if (&entry != noted_) note(entry, number);
  return true;
}

void Engine::prepare_machine(const Operation& operation) {
  const Pending& call = pending(operation.ticket);
  machine_.prepare({.plan = operation.plan,
                    .input = call.input,
                    .output = call.output,
                    .kernel = call.entry->kernel,
                    .kernel_context = call.entry->kernel_context.get(),
                    .small_kernel = call.entry->small_kernel,
                    .scale = call.entry->scale,
                    .factor = call.factor,
                    .copies_once = call.entry->copies_once});
  machine_.begin(operation.number);
  machine_.set_streams_staging(operation.streams_staging);
  prepared_ = &operation;
  last_.is_ready = last_.is_short && !hooks_.slow.is_any() && operation.ticket + 1 == next_ &&
                   options_.waiting == Waiting::spin && !machine_.has_links();
}

bool Engine::walk_at_pace(Operation& operation) {
  Paced paced(machine_, *hooks_.pace);
  return advance(operation.lane, operation.plan, paced);
}

bool Engine::walk_slowly(Operation& operation) {
  Slowed slowed(machine_, hooks_.slow, ranks());
  return advance(operation.lane, operation.plan, slowed);
}

bool Engine::walk(Operation& operation) {
  if (prepared_ != &operation) prepare_machine(operation);
  const Lane before = operation.lane;
  const bool is_complete = hooks_.pace != nullptr ? walk_at_pace(operation)
                           : hooks_.slow.is_any() ? walk_slowly(operation)
                                                  : advance(operation.lane, operation.plan, machine_);
  if (is_complete || operation.lane.at != before.at || operation.lane.cursor != before.cursor) ++moves_;
  if (!is_complete || !machine_.failure().is_ok()) return false;
  finish(operation);
  return true;
}

void Engine::finish(Operation& finished) {
  const PlanHeader& header = finished.plan.header();
  finished.is_complete = true;
  if (header.uses_channels) channels_are_taken_ = false;
  if (header.synchronises) {
    free_until_ = std::max(free_until_, finished.number + generations_ / 2);
    heard_until_ = std::max(heard_until_, finished.number + generations_ / 2);
  }
  bool is_to_be_told = false;
  for (; in_flight_ > 0 && operation(completed_ + 1).is_complete; --in_flight_) {
    is_to_be_told |= !operation(++completed_).plan.header().synchronises;
  }
  journal_.finished.store(completed_, std::memory_order_release);
  if (is_to_be_told) lines_[static_cast<std::size_t>(rank_)]->operation.store(completed_, std::memory_order_release);
  Pending& call = pending(finished.ticket);
  if (header.scratch_bytes >= kLeastChosenBytes) finish_chosen(finished, call.entry->stores);
  finish_segment(call);
}

void Engine::finish_segment(Pending& call) {
  const BoundEntry& entry = *call.entry;
  call.is_walking = false;
  if (++call.segment == entry.segments) {
    call.is_complete = true;
    while (first_ != next_ && pending(first_).is_complete) ++first_;
    return;
  }
  if (call.input != nullptr) call.input += entry.call.segment_bytes;
  if (call.output != nullptr) call.output += entry.call.segment_bytes;
}

void Engine::finish_chosen(const Operation& operation, StoreChoice& stores) {
  const PlanHeader& header = operation.plan.header();
  const auto elapsed = stores.is_trial() ? Clock::now() - operation.start : Clock::duration();
  stores.finish(static_cast<float>(elapsed.count()) / static_cast<float>(header.scratch_bytes));
  if (stores.is_to_be_told()) tell_costs(*lines_[static_cast<std::size_t>(rank_)], header.hash, stores.costs());
  if (!stores.is_due()) return;
  StoreCosts worst = stores.costs();
  for (const CompletionLine* line : lines_) {
    if (line->trial.load(std::memory_order_relaxed) != header.hash) continue;  // it tries another call already
    for (std::size_t way = 0; way < worst.size(); ++way) {
      worst[way] = std::max(worst[way], line->costs[way].load(std::memory_order_relaxed));
    }
  }
  stores.decide(worst);
}

void Engine::progress(int patience) {
  const std::uint64_t moves_before = moves_;
  if (network_ != nullptr) [[unlikely]]
    receive_over_links();
  if (!transfers_.is_idle()) {
    if (!is_held_back() && transfers_.progress()) ++moves_;
    patience = 0;
  }
  machine_.set_patience(in_flight_ <= 1 ? patience : 0);
  const std::uint64_t newest = completed_ + in_flight_;
  for (std::uint64_t number = completed_ + 1; number <= newest; ++number) {
    if (!operation(number).is_complete) walk(operation(number));
  }
  while (start_next()) {
    machine_.set_patience(in_flight_ <= 1 ? patience : 0);
    walk(operation(completed_ + in_flight_));
  }
  if (network_ != nullptr) [[unlikely]]
    send_over_links(moves_ == moves_before ? Mood::idle : Mood::busy);
  if (moves_ != moves_before) tell_moved();
}

void Engine::receive_over_links() {
  if (network_->receive()) ++moves_;
}

void Engine::send_over_links(Mood mood) {
  const bool has_sent = network_->send(mood);
  if (!network_->failure().is_ok() && failed_.is_ok()) (void)fail(network_->failure());
  if (hooks_.pace != nullptr && (has_sent || !network_->is_quiet())) hooks_.pace->went_on();
}

/// A look at links is a system call. So those of communicators that have nothing in flight are not looked at each time.
bool Engine::progress_others() {
  const bool looks_at_links = hooks_.pace != nullptr || ++looks_at_others_ % kLooksBetweenIdleLinks == 0;
  bool is_alone = true;
  for (Engine* const other : *company_) {
    if (other == this) continue;
    if (other->is_busy()) {
      other->progress(0);
      is_alone = false;
    } else if (other->network_ != nullptr && looks_at_links) {
      other->move_links();
    }
  }
  return is_alone;
}

void Engine::progress_all() {
  const bool is_alone = progress_others();
  progress(is_alone ? patience() : 0);
}

Result<Work> Engine::post(const Call& call) {
  TUTTI_RETURN_IF_ERROR(accept(call));
  TUTTI_RETURN_IF_ERROR(put_fence());
  enqueue();
  const std::uint64_t ticket = next_ - 1;
  progress(0);
  return handle({.number = ticket});
}

/// What start_next, walk and finish do, without what is known of a short call: the machine is prepared for it already.
inline bool Engine::begin_again() {
  const PlanHeader& header = last_.plan.header();
  const std::uint64_t number = completed_ + 1;
  if (header.uses_generation && !generation_is_free(number)) [[unlikely]] {
    enqueue();
    return false;
  }
  Lane lane;
  bool is_complete = false;
  if (header.is_exchange) {
    is_complete = machine_.begin_exchange(number, lane, last_.plan);
  } else {
    machine_.begin(number);
    is_complete = advance(lane, last_.plan, machine_);
  }
  if (is_complete) [[likely]] {
    completed_ = number;
    if (header.synchronises) {
      free_until_ = number + generations_ / 2;
    } else {
      lines_[static_cast<std::size_t>(rank_)]->operation.store(number, std::memory_order_release);
    }
    return true;
  }
  operation(number) = {.number = number, .ticket = next_, .plan = last_.plan, .lane = lane};
  prepared_ = &operation(number);
  in_flight_ = 1;
  channels_are_taken_ = header.uses_channels;
  enqueue();
  pending(next_ - 1).is_walking = true;
  starting_ = next_;
  return false;
}

Status Engine::run_again() {
  machine_.set_patience(patience());
  const bool is_complete = begin_again();
  ring();
  if (is_complete) [[likely]]
    return {};
  return wait({.number = next_ - 1}, options_.timeout);
}

Status Engine::run(const Call& call) {
  if (can_run_again() && is_last(call, PlanCache::key_of(call))) [[likely]]
    return run_again();
  TUTTI_RETURN_IF_ERROR(accept(call));
  TUTTI_RETURN_IF_ERROR(put_fence());
  enqueue();
  progress(patience());
  if (first_ == next_ && !machine_.has_links()) return failed_;
  return wait({.number = next_ - 1}, options_.timeout);
}

/// A call that lies where the last one lay is placed as that was.
Status Engine::run_where_it_lies(const Call& call) {
  const bool is_last =
      PlanCache::key_of(call).is_same_elsewhere(last_.key) && call.input == last_.input && call.output == last_.output;
  if (can_run_again() && is_last) [[likely]]
    return run_again();
  return place_and_run(call);
}

Status Engine::place_and_run(const Call& call) { return run(placed_where_it_lies(call, rank_, ranks_)); }

Result<Work> Engine::post_transfer(const Transfers::Request& request, Count count, int tag) {
  TUTTI_RETURN_IF_ERROR(failed_);
  const bool is_send = request.direction == Direction::send;
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t bytes, bytes_of_transfer({.is_send = is_send,
                                                                      .peer = request.peer,
                                                                      .ranks = ranks_,
                                                                      .buffer = request.buffer,
                                                                      .count = count,
                                                                      .dtype = request.dtype,
                                                                      .tag = tag}));
  Transfers::Request whole = request;
  whole.bytes = bytes;
  whole.tag = static_cast<std::uint32_t>(tag);
  const Result<std::uint64_t> posted = transfers_.post(whole);
  if (!posted.is_ok()) {
    TUTTI_RETURN_IF_ERROR(check_own_failures());
    return posted.status();
  }
  const std::uint64_t number = posted.value();
  if (!is_held_back() && transfers_.progress()) tell_moved();
  if (network_ != nullptr) [[unlikely]]
    send_over_links(Mood::busy);
  return handle({.number = number, .peer = request.peer, .kind = is_send ? Ticket::Kind::send : Ticket::Kind::receive});
}

Result<Work> Engine::post_send(const void* buffer, Count count, Dtype dtype, int peer, int tag) {
  auto* const bytes = const_cast<std::byte*>(static_cast<const std::byte*>(buffer));  // is not written
  return post_transfer({.direction = Direction::send, .peer = peer, .buffer = bytes, .dtype = dtype}, count, tag);
}

Result<Work> Engine::post_recv(void* buffer, Count count, Dtype dtype, int peer, int tag) {
  auto* const bytes = static_cast<std::byte*>(buffer);
  return post_transfer({.direction = Direction::receive, .peer = peer, .buffer = bytes, .dtype = dtype}, count, tag);
}

Result<std::optional<Message>> Engine::probe(int peer, std::optional<int> tag) {
  TUTTI_RETURN_IF_ERROR(
      bytes_of_transfer({.peer = peer, .ranks = ranks_, .tag = tag.value_or(0)}).status());  // what is out of range
  TUTTI_RETURN_IF_ERROR(failed_);
  progress_all();
  TUTTI_RETURN_IF_ERROR(check_own_failures());
  const std::optional<std::uint32_t> asked =
      tag ? std::optional(static_cast<std::uint32_t>(*tag)) : std::optional<std::uint32_t>();
  const auto probed = transfers_.probe(peer, asked);
  TUTTI_RETURN_IF_ERROR(check_own_failures());
  TUTTI_RETURN_IF_ERROR(probed.status());
  if (probed.value().has_moved) {
    tell_moved();
    if (network_ != nullptr) send_over_links(Mood::busy);
  }
  if (!probed.value().message) TUTTI_RETURN_IF_ERROR(check_failures());
  return probed.value().message;
}

bool Engine::take_back(const Ticket& receive) {
  if (!failed_.is_ok()) return false;
  progress_all();
  return transfers_.cancel(receive.peer, receive.number);
}

}  // namespace tutti
