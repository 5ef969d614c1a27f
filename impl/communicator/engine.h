// SPDX-License-Identifier: Apache-2.0
// The communicator of a CPU rank: posted calls wait in a ring and are walked in post order, segment by segment. Each
// segment is an operation with a number of its own and the generation number mod K.
#pragma once

#include <string>
#include <vector>

#include "impl/communicator/communicator.h"
#include "impl/communicator/plan_cache.h"
#include "impl/execute/cpu_machine.h"

namespace tutti {

class Engine final : public Communicator {
 public:
  Engine(Domain& domain, int rank, CommunicatorOptions options);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  Status prepare(const Call& call) override;
  [[nodiscard]] Result<Work> post(const Call& call) override;
  Status run(const Call& call) override;
  [[nodiscard]] Result<void*> alloc_shared(std::size_t bytes) override { return domain_.alloc_shared(rank_, bytes); }
  void free_shared(void* pointer) override {
    last_ = {};
    domain_.free_shared(rank_, pointer);
  }
  [[nodiscard]] const Algorithm& choose(const Call& call) const override;

 protected:
  Result<bool> test(std::uint64_t ticket) override;
  Status wait(std::uint64_t ticket, std::chrono::nanoseconds timeout) override;
  [[nodiscard]] std::string position(std::uint64_t ticket) const override;

 private:
  static constexpr int kPatience = 256;  ///< polls of one word before a spinning wait looks around

  /// A call on its way.
  struct Pending {
    BoundEntry* entry = nullptr;
    const std::byte* input = nullptr;  ///< of the segment at hand
    std::byte* output = nullptr;
    Factor factor{};  ///< of premul_sum
    Count segment = 0;
  };

  /// A call that was found valid, and its plans. A loop repeats its calls: for those, looking up and checking is this
  /// comparison.
  struct Accepted {
    PlanCache::Key key;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    BoundEntry* entry = nullptr;  ///< nullptr: nothing was accepted yet
    Factor factor{};
    bool is_short = false;  ///< one segment, no stores to choose
  };

  [[nodiscard]] Result<BoundEntry*> bind_call(const Call& call, const PlanCache::Key& key);
  Status check_buffers(const Call& call) const;
  Status check_addresses(const Call& call, const BoundEntry& entry);
  /// Makes `last_` this call. Errors: of post.
  Status accept(const Call& call);
  Status accept_new(const Call& call, const PlanCache::Key& key);
  [[nodiscard]] bool is_last(const Call& call, const PlanCache::Key& key) const {
    return key == last_.key && call.input == last_.input && call.output == last_.output && last_.entry != nullptr;
  }
  /// A short call that repeats the last one while nothing else is under way; false: it stopped at a wait and is
  /// pending.
  bool run_again();
  /// Puts the last accepted call at the end of the ring.
  void enqueue();
  [[nodiscard]] Pending& pending(std::uint64_t ticket) { return ring_[ticket & ring_mask_]; }
  [[nodiscard]] const Pending& pending(std::uint64_t ticket) const { return ring_[ticket & ring_mask_]; }
  void grow();

  /// Walks the oldest calls as far as they go, looking `patience` times at what a step waits for.
  void progress(int patience);
  [[nodiscard]] int patience() const { return options_.waiting == Waiting::spin ? kPatience : 0; }
  [[nodiscard]] bool start(const Pending& call);
  [[nodiscard]] bool generation_is_free(std::uint64_t number);
  void complete_operation(const PlanHeader& header);
  void finish_segment(Pending& call);
  /// Around a segment whose stores to scratch are chosen by trial.
  void start_chosen(const StoreChoice& stores);
  void finish_chosen(StoreChoice& stores);
  /// The part of waiting that is not in a hurry: failures, other ranks' aborts, the deadline.
  Status check(Clock::time_point deadline);
  Status fail(Status status);
  [[nodiscard]] std::string describe_wait() const;

  Domain& domain_;
  int rank_;
  int ranks_;
  std::uint64_t generations_;
  CommunicatorOptions options_;
  CpuMachine machine_;
  PlanCache cache_;
  std::vector<CompletionLine*> lines_;  // [rank]
  std::vector<Pending> ring_;           // a power of two
  std::uint64_t ring_mask_ = 0;
  std::uint64_t first_ = 0;  // ticket of the oldest call under way
  std::uint64_t next_ = 0;   // ticket of the next call
  Accepted last_;
  Lane lane_;
  PlanView plan_;  // of the segment that is walked
  bool is_started_ = false;
  Clock::time_point segment_start_;   // where the store choice wants it
  std::uint64_t completed_ = 0;       // operations complete here
  std::uint64_t known_complete_ = 0;  // every rank has completed at least so many
  Status failed_;                     // first error; sticky; nothing is accepted after it
};

}  // namespace tutti
