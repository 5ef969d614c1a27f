// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/engine.h"

#include <algorithm>
#include <cstring>

namespace tutti {

Result<std::unique_ptr<Communicator>> Communicator::create(Domain& domain, int rank, CommunicatorOptions options) {
  return create_with_hooks(domain, rank, options, {});
}

Result<std::unique_ptr<Communicator>> create_with_hooks(Domain& domain, int rank, const CommunicatorOptions& options,
                                                        Hooks hooks) {
  if (rank < 0 || rank >= domain.shape().ranks) {
    return error(Code::invalid_argument, "rank {} is out of range: 0 to {}", rank, domain.shape().ranks - 1);
  }
  const Engine::Common common{.options = options, .hooks = std::move(hooks), .company = std::make_shared<Company>()};
  return std::unique_ptr<Communicator>(new Engine(domain.seen_by(rank), rank, common));
}

namespace {

/// What `plan` touches of memory that others share.
void add_needs(const Plan& plan, MemoryNeeds& needs) {
  const auto add = [](auto& list, const auto& one) {
    if (std::ranges::find(list, one) == list.end()) list.push_back(one);
  };
  const int rank = plan.header().rank;
  if (plan.header().scratch_bytes > 0) add(needs.scratch_of, rank);
  needs.scratch_bytes = std::max(needs.scratch_bytes, static_cast<std::size_t>(plan.header().scratch_bytes));
  for (const PlanOp& op : plan.ops()) {
    if (op.verb != Verb::move) continue;
    for (int i = 0; i < op.destinations + op.sources; ++i) {
      const PlanOperand& operand = plan.operands()[op.first_operand + static_cast<std::uint32_t>(i)];
      const auto end = static_cast<std::size_t>(operand.offset + op.bytes);
      if (operand.space == Space::channel) {
        const int peer = operand.ranks.first;
        add(needs.channels, i < op.destinations ? MemoryNeeds::Channel{.from = rank, .to = peer}
                                                : MemoryNeeds::Channel{.from = peer, .to = rank});
        needs.slice_bytes = std::max(needs.slice_bytes, end);
      } else if (operand.space == Space::scratch) {
        int member = operand.is_mine ? rank : operand.ranks.first;
        const int members = operand.is_mine ? 1 : operand.ranks.n;
        for (int n = 0; n < members; ++n, member = operand.ranks.after(member, plan.header().ranks)) {
          add(needs.scratch_of, member);
        }
        needs.scratch_bytes = std::max(needs.scratch_bytes, end);
      }
    }
  }
}

}  // namespace

Status Engine::prepare(const Call& call) {
  if (!failed_.is_ok()) return failed_;
  PlanCache::Key key = PlanCache::key_of(call);
  if (binder_.find(call, key) != nullptr) return {};
  TUTTI_RETURN_IF_ERROR(binder_.check_call(call));
  return bind(call, key).status();
}

Result<BoundEntry*> Engine::bind(const Call& call, const PlanCache::Key& key) {
  TUTTI_ASSIGN_OR_RETURN(BoundEntry* const entry, binder_.bind(call, key));
  TUTTI_RETURN_IF_ERROR(machine_.open_channels(entry->call.plan(0).view()));
  TUTTI_RETURN_IF_ERROR(machine_.open_channels(entry->call.plan(entry->segments - 1).view()));
  if (!domain_.allocates_when_needed()) return entry;
  MemoryNeeds needs;
  add_needs(entry->call.plan(0), needs);
  add_needs(entry->call.plan(entry->segments - 1), needs);
  // The others may have theirs, and wait for this rank already.
  const Status allocated = domain_.allocate(needs);
  if (!allocated.is_ok()) return fail(allocated);
  return entry;
}

Status Engine::accept_new(const Call& call, const PlanCache::Key& key) {
  TUTTI_RETURN_IF_ERROR(failed_);
  if (is_forming_) {
    return error(Code::invalid_argument, "{} while a group is being formed of this communicator: wait for it first",
                 to_string(call.collective));
  }
  PlanCache::Key whole_key = key;
  BoundEntry* entry = binder_.find(call, whole_key);
  if (entry == nullptr) TUTTI_RETURN_IF_ERROR(binder_.check_call(call));
  TUTTI_RETURN_IF_ERROR(binder_.check_buffers(call));
  if (entry == nullptr) {
    if (binder_.is_full() && first_ == next_) {
      binder_.forget_v_forms();
      noted_ = nullptr;
      machine_.forget_plans();
    }
    const Result<BoundEntry*> bound = bind(call, whole_key);
    // Only rank 0 proves, so the others may be on their way already.
    if (bound.status().code() == Code::refuted) return fail(bound.status());
    TUTTI_ASSIGN_OR_RETURN(entry, bound);
  }
  if (call.buffers == Buffers::shared) TUTTI_RETURN_IF_ERROR(binder_.check_addresses(call, *entry));
  const PlanView plan = entry->call.plan(0).view();
  const bool chooses_stores = plan.header().scratch_bytes >= kLeastChosenBytes;
  // A v form is looked up every time: the key that calls are compared by does not hold its blocks.
  last_ = {.key = call.blocks == nullptr ? key : PlanCache::key_of_none(),
           .input = static_cast<const std::byte*>(call.input),
           .output = static_cast<std::byte*>(call.output),
           .entry = entry,
           .is_short = entry->segments == 1 && !chooses_stores && entry->scale == nullptr && !entry->copies_once,
           .plan = plan};
  if (entry->scale != nullptr) std::memcpy(last_.factor.data(), call.factor, size_of(call.dtype));
  return {};
}

}  // namespace tutti
