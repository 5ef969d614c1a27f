// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/engine.h"

#include <cstring>

#include "impl/prove/prove.h"

namespace tutti {
namespace {

constexpr int kMostProvedRanks = 1024;

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(Domain& domain, int rank, CommunicatorOptions options) {
  if (rank < 0 || rank >= domain.shape().ranks) {
    return error(Code::invalid_argument, "rank {} is out of range: 0 to {}", rank, domain.shape().ranks - 1);
  }
  return std::unique_ptr<Communicator>(new Engine(domain, rank, options, std::make_shared<Company>()));
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
  if (is_forming_) {
    return error(Code::invalid_argument, "{} while a group is being formed of this communicator: wait for it first",
                 to_string(call.collective));
  }
  BoundEntry* entry = cache_.find(key);
  TUTTI_RETURN_IF_ERROR(check_buffers(call));
  if (entry == nullptr) {
    const Result<BoundEntry*> bound = bind_call(call, key);
    // Only rank 0 proves, so the others may be on their way already.
    if (bound.status().code() == Code::refuted) return fail(bound.status());
    TUTTI_ASSIGN_OR_RETURN(entry, bound);
  }
  if (call.buffers == Buffers::shared) TUTTI_RETURN_IF_ERROR(check_addresses(call, *entry));
  const PlanView plan = entry->call.plan(0).view();
  const bool chooses_stores = plan.header().scratch_bytes >= kLeastChosenBytes;
  last_ = {.key = key,
           .input = static_cast<const std::byte*>(call.input),
           .output = static_cast<std::byte*>(call.output),
           .entry = entry,
           .is_short = entry->segments == 1 && !chooses_stores && entry->scale == nullptr,
           .plan = plan};
  if (entry->scale != nullptr) std::memcpy(last_.factor.data(), call.factor, size_of(call.dtype));
  return {};
}

}  // namespace tutti
