// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/binder.h"

#include <algorithm>

#include "impl/execute/reach.h"
#include "impl/execute/resources.h"
#include "impl/prove/prove.h"

namespace tutti {
namespace {

constexpr int kMostProvedRanks = 1024;
// The owner of an input that is read where it lies waits until that was done. So a short one is copied (measured:
// results/2026-11-tried).
constexpr std::int64_t kMostCopied = 512;

/// What the journal says of a bound call.
CallNote note_of(const Call& call, const BoundEntry& entry) {
  const Plan& plan = entry.call.plan(0);
  CallNote note{.hash = plan.header().hash,
                .count = call.count,
                .segments = entry.segments,
                .segment_bytes = entry.call.segment_bytes,
                .root = call.root,
                .collective = call.collective,
                .dtype = call.dtype,
                .op = call.op,
                .has_shared_buffers = call.buffers == Buffers::shared,
                .has_placement = call.blocks == nullptr && !has_placement_at_root_only(call.collective),
                .is_in_place = call.is_in_place};
  entry.schedule.name.copy(note.algorithm.data(), note.algorithm.size() - 1);
  return note;
}

}  // namespace

/// A window, a pair, the hosts and the caches are those of the call's schedule, if it has one. What it touches is
/// checked.
Problem Binder::problem_of(const Call& call) const {
  Problem problem{.collective = call.collective, .ranks = ranks_, .root = call.root};
  if (hosts_ != nullptr) problem.ranks_per_host = hosts_->ranks_per_host();
  if (hosts_ == nullptr && !is_on_devices_) problem.ranks_per_cache = options_.ranks_per_cache;
  if (call.schedule == nullptr) return problem;
  problem.pairing = call.schedule->problem.pairing;
  problem.ranks_per_host = call.schedule->problem.ranks_per_host;
  problem.ranks_per_cache = call.schedule->problem.ranks_per_cache;
  return problem;
}

Buffers Binder::bound_as(const Call& call) const {
  if (call.blocks != nullptr) return call.buffers;  // ranks know their own lengths only
  const std::int64_t bytes = call.count * static_cast<std::int64_t>(size_of(call.dtype));
  return bytes > most_staged_bytes_ ? Buffers::shared : call.buffers;
}

bool Binder::may_copy_once(const Call& call) const {
  if (hosts_ != nullptr || is_on_devices_ || call.buffers == Buffers::shared) return false;
  if (call.blocks != nullptr || call.op == Op::premul_sum) return false;
  return options_.processes != nullptr || domain_.is_in_one_process();
}

Chosen Binder::choose(const Call& call) const {
  const Problem problem = problem_of(call);
  return tutti::choose({.problem = problem,
                        .buffers = is_on_devices_ ? bound_as(call) : call.buffers,
                        .cores = options_.cores,
                        .bytes = buffer_bytes(problem, call.count, size_of(call.dtype)),
                        .on = hosts_ != nullptr ? RanksPlace::several_hosts
                              : is_on_devices_  ? RanksPlace::device
                                                : RanksPlace::one_host,
                        .table = options_.table.get(),
                        .has_single_copies = may_copy_once(call)});
}

Schedule Binder::schedule_for(const Call& call, const Problem& problem) const {
  if (call.schedule != nullptr) return *call.schedule;
  const Chosen chosen = choose(call);
  return schedule_of({.algorithm = chosen.algorithm, .tuning = chosen.tuning}, problem);
}

BoundEntry* Binder::find(const Call& call, PlanCache::Key& key) const {
  if (call.blocks != nullptr) key = PlanCache::key_of(call, *call.blocks);
  return cache_.find(key, call.blocks);
}

Status Binder::check_call(const Call& call) const {
  if (std::ranges::find(known_dtypes(), call.dtype) == known_dtypes().end()) {
    return error(Code::invalid_argument, "dtype {} is out of range: 0 to {}", static_cast<int>(call.dtype),
                 known_dtypes().size() - 1);
  }
  if (call.op != Op::none && std::ranges::find(all_ops(), call.op) == all_ops().end()) {
    return error(Code::invalid_argument, "op {} is out of range: 0 to {}", static_cast<int>(call.op), all_ops().size());
  }
  if (call.root < 0 || call.root >= ranks_) {
    return error(Code::invalid_argument, "root {} is out of range: 0 to {}", call.root, ranks_ - 1);
  }
  if (is_reducing(call.collective) == (call.op == Op::none)) {
    return error(Code::invalid_argument, "{} with op {}: {}", to_string(call.collective), to_string(call.op),
                 is_reducing(call.collective) ? "it needs one" : "it has none");
  }
  if (has_counts(call.collective) != (call.blocks != nullptr)) {
    return error(Code::invalid_argument, "{} {} blocks of their own lengths", to_string(call.collective),
                 call.blocks == nullptr ? "without" : "has no");
  }
  if (call.blocks == nullptr) return {};
  const Problem problem{.collective = call.collective, .ranks = ranks_, .root = call.root};
  return check_blocks(problem, rank_, *call.blocks, call.is_in_place);
}

Result<BoundEntry*> Binder::bind(const Call& call, const PlanCache::Key& key) {
  Problem problem = problem_of(call);
  problem.collective = base_of(call.collective);
  const DomainShape& shape = domain_.shape();
  BoundEntry entry{.schedule = schedule_for(call, problem)};
  const Stores stores = entry.schedule.tuning.stores;
  if (stores == Stores::plain || stores == Stores::streamed) entry.stores.fix(stores == Stores::streamed);
  entry.copies_once = stores == Stores::single_copy && may_copy_once(call);
  if (call.blocks != nullptr) entry.blocks = *call.blocks;
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
                            .buffers = entry.copies_once ? Buffers::shared : bound_as(call),
                            .most_copied = entry.copies_once || is_on_devices_ ? 0 : kMostCopied,
                            .resources = resources_of(shape, options_.cache_bytes),
                            .segment = call.blocks == nullptr ? options_.segment : 0,
                            .lanes = options_.lanes,
                            .blocks = call.blocks};
  TUTTI_ASSIGN_OR_RETURN(entry.call, tutti::bind(entry.schedule, request));
  entry.segments = entry.call.segments();
  if (hosts_ != nullptr) TUTTI_RETURN_IF_ERROR(check_reach_of(call, entry, request));
  entry.needs_fence = hosts_ != nullptr && entry.schedule.synchronises && signals_across(entry.schedule, *hosts_);
  const bool proves = options_.prove_plans && rank_ == 0 && ranks_ <= kMostProvedRanks;
  if (proves) TUTTI_RETURN_IF_ERROR(prove_call(call, entry.schedule, request));
  entry.kernel = kernel_for(call.dtype, call.op);
  if (call.op != Op::none) entry.small_kernel = small_kernel_for(call.dtype, call.op);
  if (call.op == Op::premul_sum) entry.scale = scale_for(call.dtype);
  if (after_bind_) after_bind_(rank_, call, entry);
  entry.note = note_of(call, entry);
  return cache_.insert(key, std::move(entry));
}

Status Binder::check_reach_of(const Call& call, const BoundEntry& entry, const BindRequest& request) const {
  const Status refused = check_reach(entry.schedule, entry.call, *hosts_);
  if (refused.is_ok()) return {};
  std::string others;
  for (const Algorithm* const algorithm : algorithms_of(call.collective)) {
    const Schedule other = schedule_of(*algorithm, entry.schedule.problem);
    const auto bound = tutti::bind(other, request);
    if (!bound.is_ok() || !check_reach(other, bound.value(), *hosts_).is_ok()) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", algorithm->name);
  }
  return error(refused.code(), "{}: {}{}", refused.message(),
               others.empty() ? "no algorithm of it does not" : "choose ", others);
}

Status Binder::prove_call(const Call& call, const Schedule& schedule, const BindRequest& request) const {
  const bool knows_placement = !has_placement_at_root_only(call.collective) || rank_ == call.root;
  for (const bool is_in_place : {false, true}) {
    if (knows_placement && is_in_place != call.is_in_place) continue;
    BindRequest form = request;
    form.is_in_place = is_in_place;
    TUTTI_ASSIGN_OR_RETURN(const Proof proof,
                           call.blocks == nullptr
                               ? prove(schedule, form)
                               : prove(schedule, form, blocks_around(schedule.problem, rank_, *call.blocks)));
    if (proof.holds()) continue;
    return error(Code::refuted, "{} {} on {} ranks, {}: {}", to_string(call.collective), schedule.name, ranks_,
                 call.blocks == nullptr ? fmt::format("count {}", call.count) : "with counts",
                 to_string(proof.findings.front()));
  }
  return {};
}

Status Binder::check_buffers(const Call& call) const {
  const Problem problem = problem_of(call);
  const bool has_blocks = call.blocks != nullptr;
  const bool reads = has_blocks ? total_of(call.blocks->input) > 0 : call.count > 0 && input_blocks(problem, rank_) > 0;
  const bool writes =
      has_blocks ? total_of(call.blocks->output) > 0 : call.count > 0 && output_blocks(problem, rank_) > 0;
  if (reads && call.input == nullptr) return error(Code::invalid_argument, "the input is a null pointer");
  if (writes && call.output == nullptr) return error(Code::invalid_argument, "the output is a null pointer");
  if (call.op == Op::premul_sum && call.factor == nullptr) {
    return error(Code::invalid_argument, "premul_sum without a factor: a null pointer");
  }
  const bool is_in_place = has_blocks ? lies_in_place(problem, rank_, call.input, call.output, *call.blocks)
                                      : lies_in_place(problem, rank_, call.input, call.output,
                                                      call.count * static_cast<std::int64_t>(size_of(call.dtype)));
  if (reads && writes && call.is_in_place != is_in_place) {
    const int block = std::abs(in_place_block(problem, rank_));
    return error(
        Code::invalid_argument, "is_in_place is {}, but input and output are {}: in place {}", call.is_in_place,
        is_in_place                 ? "the same buffer"
        : call.input == call.output ? "not apart"
                                    : "two buffers",
        block == 0 ? "they are one address" : fmt::format("the smaller begins {} blocks after the larger", block));
  }
  // Blocks of a v form may lie in the gaps of the other buffer.
  if (!reads || !writes || call.is_in_place || has_blocks) return {};
  const auto bytes_of = [&](int blocks) { return static_cast<std::size_t>(blocks * call.count) * size_of(call.dtype); };
  const std::size_t input_bytes = bytes_of(input_blocks(problem, rank_));
  const std::size_t output_bytes = bytes_of(output_blocks(problem, rank_));
  const auto input = reinterpret_cast<std::uintptr_t>(call.input);
  const auto output = reinterpret_cast<std::uintptr_t>(call.output);
  if (input + input_bytes <= output || output + output_bytes <= input) return {};
  return error(Code::invalid_argument,
               "input, {} bytes at {}, and output, {} bytes at {}, overlap and are not in place", input_bytes,
               call.input, output_bytes, call.output);
}

Status Binder::check_addresses(const Call& call, const BoundEntry& entry) const {
  const std::size_t block = static_cast<std::size_t>(call.count) * size_of(call.dtype);
  const auto check_bytes = [&](const char* name, const void* pointer, std::size_t bytes) -> Status {
    if (bytes == 0 || domain_.is_shared(rank_, pointer, bytes)) return {};
    return error(Code::invalid_argument, "{} of {} bytes at {} is not from alloc_shared: pass Buffers::private_", name,
                 bytes, pointer);
  };
  if (call.blocks != nullptr) {
    const auto check_each = [&](const char* name, const void* base, const std::vector<Block>& blocks) -> Status {
      for (const Block& one : blocks) {
        if (one.bytes == 0) continue;  // it may have no address
        const auto* const at = static_cast<const std::byte*>(base) + one.offset;
        TUTTI_RETURN_IF_ERROR(check_bytes(name, at, static_cast<std::size_t>(one.bytes)));
      }
      return {};
    };
    TUTTI_RETURN_IF_ERROR(check_each("a block of the input", call.input, call.blocks->input));
    return check_each("a block of the output", call.output, call.blocks->output);
  }
  const auto check = [&](const char* name, const void* pointer, int blocks) {
    return check_bytes(name, pointer, static_cast<std::size_t>(blocks) * block);
  };
  TUTTI_RETURN_IF_ERROR(check("the input", call.input, input_blocks(entry.schedule.problem, rank_)));
  return check("the output", call.output, output_blocks(entry.schedule.problem, rank_));
}

}  // namespace tutti
