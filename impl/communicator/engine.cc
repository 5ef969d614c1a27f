// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/engine.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sched.h>

#include "impl/prove/prove.h"

namespace tutti {
namespace {

constexpr int kMostProvedRanks = 1024;
constexpr int kLooksBetweenChecks = 16;
constexpr std::int64_t kLeastChosenBytes = 16 * 1024;  // of scratch; a plan with less stores plainly

void tell_costs(CompletionLine& line, std::uint64_t plan, const StoreCosts& costs) {
  for (std::size_t way = 0; way < costs.size(); ++way) line.costs[way].store(costs[way], std::memory_order_relaxed);
  line.trial.store(plan, std::memory_order_relaxed);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(Domain& domain, int rank, CommunicatorOptions options) {
  if (rank < 0 || rank >= domain.shape().ranks) {
    return error(Code::invalid_argument, "rank {} is out of range: 0 to {}", rank, domain.shape().ranks - 1);
  }
  return std::unique_ptr<Communicator>(new Engine(domain, rank, options));
}

Engine::Engine(Domain& domain, int rank, CommunicatorOptions options)
    : domain_(domain),
      rank_(rank),
      ranks_(domain.shape().ranks),
      generations_(static_cast<std::uint64_t>(domain.shape().generations)),
      options_(options),
      machine_(domain, rank),
      ring_(16),
      ring_mask_(ring_.size() - 1) {
  for (int peer = 0; peer < ranks_; ++peer) lines_.push_back(domain.seat(peer).completion);
}

const Algorithm& Engine::choose(const Call& call) const {
  const Problem problem{.collective = call.collective, .ranks = ranks_, .root = call.root};
  return choose_algorithm(problem, call.buffers, options_.cores,
                          buffer_bytes(problem, call.count, size_of(call.dtype)));
}

Result<BoundEntry*> Engine::bind_call(const Call& call, const PlanCache::Key& key) {
  const Problem problem{.collective = call.collective, .ranks = ranks_, .root = call.root};
  if (call.root < 0 || call.root >= ranks_) {
    return error(Code::invalid_argument, "root {} is out of range: 0 to {}", call.root, ranks_ - 1);
  }
  if (is_reducing(call.collective) == (call.op == Op::none)) {
    return error(Code::invalid_argument, "{} with op {}: {}", to_string(call.collective), to_string(call.op),
                 is_reducing(call.collective) ? "it needs one" : "it has none");
  }
  const DomainShape& shape = domain_.shape();
  BoundEntry entry{.schedule = call.schedule != nullptr ? *call.schedule : schedule_of(choose(call), problem)};
  if (entry.schedule.problem != problem) {
    return error(Code::invalid_argument, "schedule {} is for another problem ({} on {} ranks, root {})",
                 entry.schedule.name, to_string(entry.schedule.problem.collective), entry.schedule.problem.ranks,
                 entry.schedule.problem.root);
  }
  const BindRequest request{.rank = rank_,
                            .count = call.count,
                            .dtype = call.dtype,
                            .op = call.op,
                            .is_in_place = call.is_in_place,
                            .buffers = call.buffers,
                            .resources = {.slots = shape.slots,
                                          .slot_bytes = static_cast<std::int64_t>(shape.slot_bytes),
                                          .scratch_bytes = static_cast<std::int64_t>(shape.scratch_bytes),
                                          .cache_bytes = options_.cache_bytes},
                            .segment = options_.segment};
  TUTTI_ASSIGN_OR_RETURN(entry.call, bind(entry.schedule, request));
  entry.segments = entry.call.segments();
  const bool proves = options_.prove_plans && rank_ == 0 && ranks_ <= kMostProvedRanks;
  const bool knows_placement = !has_placement_at_root_only(call.collective) || rank_ == call.root;
  for (const bool is_in_place : {false, true}) {
    if (!proves || (knows_placement && is_in_place != call.is_in_place)) continue;
    BindRequest form = request;
    form.is_in_place = is_in_place;
    TUTTI_ASSIGN_OR_RETURN(const Proof proof, prove(entry.schedule, form));
    if (!proof.holds()) {
      return error(Code::refuted, "{} {} on {} ranks, count {}: {}", to_string(call.collective), entry.schedule.name,
                   ranks_, call.count, to_string(proof.findings.front()));
    }
  }
  entry.kernel = kernel_for(call.dtype, call.op);
  if (call.op != Op::none) entry.small_kernel = small_kernel_for(call.dtype, call.op);
  if (call.op == Op::premul_sum) entry.scale = scale_for(call.dtype);
  return cache_.insert(key, std::move(entry));
}

Status Engine::check_buffers(const Call& call) const {
  const Problem problem{.collective = call.collective, .ranks = ranks_, .root = call.root};
  const bool reads = call.count > 0 && input_blocks(problem, rank_) > 0;
  const bool writes = call.count > 0 && output_blocks(problem, rank_) > 0;
  if (reads && call.input == nullptr) return error(Code::invalid_argument, "the input is a null pointer");
  if (writes && call.output == nullptr) return error(Code::invalid_argument, "the output is a null pointer");
  if (call.op == Op::premul_sum && call.factor == nullptr) {
    return error(Code::invalid_argument, "premul_sum without a factor: a null pointer");
  }
  const auto block_bytes = call.count * static_cast<std::int64_t>(size_of(call.dtype));
  const bool is_in_place = lies_in_place(problem, rank_, call.input, call.output, block_bytes);
  if (reads && writes && call.is_in_place != is_in_place) {
    const int block = std::abs(in_place_block(problem, rank_));
    return error(
        Code::invalid_argument, "is_in_place is {}, but input and output are {}: in place {}", call.is_in_place,
        is_in_place                 ? "the same buffer"
        : call.input == call.output ? "not apart"
                                    : "two buffers",
        block == 0 ? "they are one address" : fmt::format("the smaller begins {} blocks after the larger", block));
  }
  return {};
}

Status Engine::check_addresses(const Call& call, const BoundEntry& entry) {
  const std::size_t block = static_cast<std::size_t>(call.count) * size_of(call.dtype);
  const auto check = [&](const char* name, const void* pointer, int blocks) -> Status {
    const std::size_t bytes = static_cast<std::size_t>(blocks) * block;
    if (bytes == 0 || domain_.is_shared(rank_, pointer, bytes)) return {};
    return error(Code::invalid_argument, "{} of {} bytes at {} is not from alloc_shared: pass Buffers::private_", name,
                 bytes, pointer);
  };
  TUTTI_RETURN_IF_ERROR(check("the input", call.input, input_blocks(entry.schedule.problem, rank_)));
  return check("the output", call.output, output_blocks(entry.schedule.problem, rank_));
}

Status Engine::prepare(const Call& call) {
  if (!failed_.is_ok()) return failed_;
  const PlanCache::Key key = PlanCache::key_of(call);
  return cache_.find(key) != nullptr ? Status() : bind_call(call, key).status();
}

Status Engine::accept_new(const Call& call, const PlanCache::Key& key) {
  TUTTI_RETURN_IF_ERROR(failed_);
  BoundEntry* entry = cache_.find(key);
  TUTTI_RETURN_IF_ERROR(check_buffers(call));
  if (entry == nullptr) {
    const Result<BoundEntry*> bound = bind_call(call, key);
    // Only rank 0 proves, so the others may be on their way already.
    if (bound.status().code() == Code::refuted) return fail(bound.status());
    TUTTI_ASSIGN_OR_RETURN(entry, bound);
  }
  if (call.buffers == Buffers::shared) TUTTI_RETURN_IF_ERROR(check_addresses(call, *entry));
  const bool chooses_stores = entry->call.plan(0).header().scratch_bytes >= kLeastChosenBytes;
  last_ = {.key = key,
           .input = static_cast<const std::byte*>(call.input),
           .output = static_cast<std::byte*>(call.output),
           .entry = entry,
           .is_short = entry->segments == 1 && !chooses_stores && entry->scale == nullptr};
  if (entry->scale != nullptr) std::memcpy(last_.factor.data(), call.factor, size_of(call.dtype));
  return {};
}

inline Status Engine::accept(const Call& call) {
  const PlanCache::Key key = PlanCache::key_of(call);
  const bool has_factor = call.op == Op::premul_sum;  // which may be another each time
  return is_last(call, key) && !has_factor ? Status() : accept_new(call, key);
}

inline void Engine::enqueue() {
  if (next_ - first_ > ring_mask_) [[unlikely]]
    grow();
  pending(next_++) = {.entry = last_.entry, .input = last_.input, .output = last_.output, .factor = last_.factor};
}

void Engine::grow() {
  std::vector<Pending> wider(2 * ring_.size());
  for (std::uint64_t ticket = first_; ticket < next_; ++ticket) wider[ticket & (wider.size() - 1)] = pending(ticket);
  ring_ = std::move(wider);
  ring_mask_ = ring_.size() - 1;
}

inline bool Engine::start(const Pending& call) {
  BoundEntry& entry = *call.entry;
  const PlanView plan = entry.call.plan(call.segment).view();
  const std::uint64_t number = completed_ + 1;
  if (plan.header().uses_generation && !generation_is_free(number)) return false;
  machine_.prepare({.plan = plan,
                    .input = call.input,
                    .output = call.output,
                    .kernel = entry.kernel,
                    .small_kernel = entry.small_kernel,
                    .scale = entry.scale,
                    .factor = call.factor});
  machine_.begin(number);
  if (plan.header().scratch_bytes >= kLeastChosenBytes) start_chosen(entry.stores);
  plan_ = plan;
  lane_ = {};
  is_started_ = true;
  return true;
}

/// Operation s may write generation s mod K once every rank has completed s - K. The least that the ranks have said is
/// remembered and read anew only when it is too old, about once in K operations.
inline bool Engine::generation_is_free(std::uint64_t number) {
  if (number <= known_complete_ + generations_) [[likely]]
    return true;
  std::uint64_t least = completed_;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_)
      least = std::min(least, lines_[static_cast<std::size_t>(peer)]->operation.load(std::memory_order_acquire));
  }
  known_complete_ = std::max(known_complete_, least);
  return number <= known_complete_ + generations_;
}

inline void Engine::complete_operation(const PlanHeader& header) {
  if (header.synchronises) {
    known_complete_ = completed_++;  // everybody has started this operation, hence completed the one before
  } else {
    lines_[static_cast<std::size_t>(rank_)]->operation.store(++completed_, std::memory_order_release);
  }
}

inline void Engine::finish_segment(Pending& call) {
  is_started_ = false;
  complete_operation(plan_.header());
  BoundEntry& entry = *call.entry;
  if (plan_.header().scratch_bytes >= kLeastChosenBytes) finish_chosen(entry.stores);
  if (++call.segment == entry.segments) {
    ++first_;
    return;
  }
  if (call.input != nullptr) call.input += entry.call.segment_bytes;
  if (call.output != nullptr) call.output += entry.call.segment_bytes;
}

void Engine::progress(int patience) {
  machine_.set_patience(patience);
  while (first_ != next_) {
    Pending& call = pending(first_);
    if (!is_started_ && !start(call)) return;
    if (!advance(lane_, plan_, machine_)) return;
    finish_segment(call);
  }
}

Result<Work> Engine::post(const Call& call) {
  TUTTI_RETURN_IF_ERROR(accept(call));
  enqueue();
  const std::uint64_t ticket = next_ - 1;
  progress(0);
  return handle(ticket);
}

/// What start, advance and finish_segment do, without what is known of a short call: its work is prepared already.
inline bool Engine::run_again() {
  const PlanHeader& header = plan_.header();
  const std::uint64_t number = completed_ + 1;
  const bool can_start = !header.uses_generation || generation_is_free(number);
  if (can_start) [[likely]] {
    machine_.begin(number);
    lane_ = {};
    if (advance(lane_, plan_, machine_)) [[likely]] {
      complete_operation(header);
      return true;
    }
  }
  is_started_ = can_start;
  enqueue();
  return false;
}

Status Engine::run(const Call& call) {
  if (last_.is_short && first_ == next_ && is_last(call, PlanCache::key_of(call))) [[likely]] {
    machine_.set_patience(patience());
    if (run_again()) [[likely]]
      return {};
  } else {
    TUTTI_RETURN_IF_ERROR(accept(call));
    enqueue();
    progress(patience());
    if (first_ == next_) return {};
  }
  return wait(next_ - 1, options_.timeout);
}

void Engine::start_chosen(const StoreChoice& stores) {
  machine_.set_streams_staging(stores.streams());
  if (stores.is_trial()) segment_start_ = Clock::now();
}

void Engine::finish_chosen(StoreChoice& stores) {
  const PlanHeader& header = plan_.header();
  const auto elapsed = stores.is_trial() ? Clock::now() - segment_start_ : Clock::duration();
  stores.finish(static_cast<float>(elapsed.count()) / static_cast<float>(header.scratch_bytes));
  machine_.set_streams_staging(false);
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

Result<bool> Engine::test(std::uint64_t ticket) {
  if (ticket < first_) return true;
  TUTTI_RETURN_IF_ERROR(failed_);  // after it, nothing may be written any more
  progress(0);
  if (ticket < first_) return true;
  TUTTI_RETURN_IF_ERROR(check(Clock::time_point::max()));
  return false;
}

Status Engine::wait(std::uint64_t ticket, std::chrono::nanoseconds timeout) {
  if (ticket < first_) return {};
  TUTTI_RETURN_IF_ERROR(failed_);
  progress(patience());
  if (ticket < first_) return {};
  // The clock is first read after some polls: reading it takes as long as a small operation.
  for (std::optional<Clock::time_point> deadline;;) {
    for (int i = 0; i < kLooksBetweenChecks; ++i) {
      if (options_.waiting == Waiting::spin) {
        pause();
      } else {
        sched_yield();
      }
      if (is_started_ && !machine_.may_go_on()) continue;
      progress(patience());
      if (ticket < first_) return {};
    }
    if (!deadline) deadline = Clock::now() + timeout;
    TUTTI_RETURN_IF_ERROR(check(*deadline));
  }
}

Status Engine::check(Clock::time_point deadline) {
  if (!failed_.is_ok()) return failed_;
  if (!machine_.failure().is_ok()) return fail(machine_.failure());
  if (const std::uint64_t word = domain_.abort_line().word.load(std::memory_order_acquire); word != 0) {
    return fail(error(Code::aborted, "rank {} failed", word - 1));
  }
  if (deadline != Clock::time_point::max() && Clock::now() >= deadline) {
    if (machine_.compare_plans(); !machine_.failure().is_ok()) return fail(machine_.failure());
    return fail(error(Code::timeout, "rank {} gave up: {}", rank_, describe_wait()));
  }
  return {};
}

Status Engine::fail(Status status) {
  last_ = {};
  failed_ = std::move(status);
  std::uint64_t nobody = 0;
  domain_.abort_line().word.compare_exchange_strong(nobody, static_cast<std::uint64_t>(rank_) + 1,
                                                    std::memory_order_release);
  return failed_;
}

std::string Engine::describe_wait() const {
  const Pending& call = pending(first_);
  const Plan& plan = call.entry->call.plan(call.segment);
  const std::string where = fmt::format("operation {} ({} {}, segment {} of {})", completed_ + 1,
                                        to_string(call.entry->schedule.problem.collective), call.entry->schedule.name,
                                        call.segment + 1, call.entry->call.segments());
  if (!is_started_) return where + " waits for the ranks that have not completed an operation a generation ago";
  const PlanOp& op = plan.ops()[lane_.at];
  const std::string step = fmt::format("{}, step {} of {}", where, op.step + 1, call.entry->schedule.step_count(rank_));
  if (op.verb == Verb::wait) {
    return fmt::format("{}: waits for phase {} of rank {}", step, op.phase, plan.ranks(op).at(lane_.cursor, ranks_));
  }
  const auto is_channel = [](const PlanOperand& operand) { return operand.space == Space::channel; };
  const auto sources = plan.sources(op);
  const auto source = std::find_if(sources.begin(), sources.end(), is_channel);
  if (source != sources.end()) return fmt::format("{}: waits for data from rank {}", step, source->ranks.first);
  const auto destinations = plan.destinations(op);
  const auto destination = std::find_if(destinations.begin(), destinations.end(), is_channel);
  if (destination != destinations.end())
    return fmt::format("{}: waits for room at rank {}", step, destination->ranks.first);
  return step;
}

std::string Engine::position(std::uint64_t ticket) const {
  if (ticket < first_) return "complete";
  if (ticket > first_) return fmt::format("{} calls before it are not complete", ticket - first_);
  return describe_wait();
}

}  // namespace tutti
