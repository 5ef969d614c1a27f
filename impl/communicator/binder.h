// SPDX-License-Identifier: Apache-2.0
// How a rank's call becomes a bound one: it is checked, its algorithm chosen, and it is bound and proved once.
#pragma once

#include <limits>

#include "impl/communicator/hooks.h"
#include "impl/communicator/plan_cache.h"
#include "impl/transports/domain.h"
#include "impl/transports/hosts.h"

namespace tutti {

class Binder {
 public:
  /// Whose calls these are.
  struct Place {
    Domain& domain;
    int rank = 0;
    bool is_on_devices = false;
    /// Private buffers longer than this are bound as shared ones: every rank addresses those of all.
    std::int64_t most_staged_bytes = std::numeric_limits<std::int64_t>::max();
  };
  /// What the arguments refer to outlives the binder.
  Binder(const Place& place, const CommunicatorOptions& options, const AfterBind& after_bind)
      : domain_(place.domain),
        rank_(place.rank),
        ranks_(place.domain.shape().ranks),
        hosts_(place.domain.hosts() != nullptr && place.domain.hosts()->count() > 1 ? place.domain.hosts() : nullptr),
        is_on_devices_(place.is_on_devices),
        most_staged_bytes_(place.most_staged_bytes),
        options_(options),
        after_bind_(after_bind) {}
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  /// Whether the ranks can read and write the call's private buffers where they lie. A factor is its rank's own, and of
  /// a v form ranks know their own lengths only.
  [[nodiscard]] bool may_copy_once(const Call& call) const;
  /// What `auto` chooses for it.
  [[nodiscard]] Chosen choose(const Call& call) const;
  /// The bound call where there is one already. `key` becomes the whole key where the call is of a v form.
  [[nodiscard]] BoundEntry* find(const Call& call, PlanCache::Key& key) const;
  /// Errors: invalid_argument for a value out of range, whatever the addresses.
  Status check_call(const Call& call) const;
  /// Errors: invalid_argument for buffers that are missing, or do not lie as the call says.
  Status check_buffers(const Call& call) const;
  /// Errors: invalid_argument for a buffer that is not from alloc_shared. Requires: the call's buffers are shared.
  Status check_addresses(const Call& call, const BoundEntry& entry) const;
  /// Errors: those of tutti::bind; refuted where the proof fails; unavailable where the schedule would touch memory of
  /// another host, on all ranks alike, naming the algorithms that do not.
  [[nodiscard]] Result<BoundEntry*> bind(const Call& call, const PlanCache::Key& key);

  [[nodiscard]] bool is_full() const { return cache_.is_full(); }
  void forget_v_forms() { cache_.forget_v_forms(); }

 private:
  [[nodiscard]] Problem problem_of(const Call& call) const;
  /// The call's own, or that of what `auto` chooses.
  [[nodiscard]] Schedule schedule_for(const Call& call, const Problem& problem) const;
  /// As what the call's buffers are bound, on all ranks alike, if peers cannot address private ones.
  [[nodiscard]] Buffers bound_as(const Call& call) const;
  /// Whether the plans stay within what ranks reach.
  Status check_reach_of(const Call& call, const BoundEntry& entry, const BindRequest& request) const;
  Status prove_call(const Call& call, const Schedule& schedule, const BindRequest& request) const;

  Domain& domain_;
  int rank_;
  int ranks_;
  const Hosts* hosts_;  // null: one
  bool is_on_devices_;
  std::int64_t most_staged_bytes_;
  const CommunicatorOptions& options_;
  const AfterBind& after_bind_;
  PlanCache cache_;
};

}  // namespace tutti
