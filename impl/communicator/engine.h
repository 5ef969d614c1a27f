// SPDX-License-Identifier: Apache-2.0
// The communicator of a CPU rank. Posted calls wait in a ring and start in post order, segment by segment. Each segment
// is an operation with a number of its own and the generation number mod K. Several operations are under way at once,
// each a lane, where they have generations to themselves (impl/execute/README.md); sends and receives beside them.
#pragma once

#include <string>
#include <vector>

#include "impl/communicator/binder.h"
#include "impl/communicator/communicator.h"
#include "impl/communicator/hooks.h"
#include "impl/execute/cpu_machine.h"
#include "impl/execute/crowd_watch.h"
#include "impl/execute/pace.h"
#include "impl/execute/transfers.h"

namespace tutti {

class Engine;
/// The communicators of one rank: a wait in one makes progress on all.
using Company = std::vector<Engine*>;

class Engine final : public Communicator {
 public:
  /// What all communicators of a rank have in common.
  struct Common {
    CommunicatorOptions options;
    Hooks hooks;
    std::shared_ptr<Company> company;
  };
  Engine(Domain& domain, int rank, const Common& common);
  /// Of a group, whose domain is its own.
  Engine(std::unique_ptr<Domain> domain, int rank, const Common& common);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  [[nodiscard]] int ranks_per_cache() const override { return hosts() == nullptr ? options_.ranks_per_cache : 0; }
  [[nodiscard]] const Hosts* hosts() const override { return network_ == nullptr ? nullptr : domain_.hosts(); }
  [[nodiscard]] int world_rank(int rank) const override { return domain_.world_rank(rank); }
  Status prepare(const Call& call) override;
  [[nodiscard]] Result<Work> post(const Call& call) override;
  Status run(const Call& call) override;
  Status abort(int rank, std::string_view reason) override;
  [[nodiscard]] Result<Work> post_send(const void* buffer, Count count, Dtype dtype, int peer, int tag) override;
  [[nodiscard]] Result<Work> post_recv(void* buffer, Count count, Dtype dtype, int peer, int tag) override;
  [[nodiscard]] Result<std::optional<Message>> probe(int peer, std::optional<int> tag) override;
  [[nodiscard]] Result<std::unique_ptr<GroupFormation>> post_split(int colour, int key) override;
  [[nodiscard]] Result<std::unique_ptr<GroupFormation>> post_new_group(std::span<const int> ranks) override;
  [[nodiscard]] Result<void*> alloc_shared(std::size_t bytes) override { return domain_.alloc_shared(rank_, bytes); }
  void free_shared(void* pointer) override {
    last_ = {};
    domain_.free_shared(rank_, pointer);
  }
  [[nodiscard]] const Algorithm& choose(const Call& call) const override { return *binder_.choose(call).algorithm; }
  [[nodiscard]] bool may_copy_once(const Call& call) const override { return binder_.may_copy_once(call); }
  [[nodiscard]] std::string report() const override;

 protected:
  Result<bool> test(const Ticket& ticket) override;
  Status wait(const Ticket& ticket, std::chrono::nanoseconds timeout) override;
  Result<bool> wait_for(const Ticket& ticket, std::chrono::nanoseconds timeout) override;
  bool take_back(const Ticket& receive) override;
  [[nodiscard]] std::string position(const Ticket& ticket) const override;
  [[nodiscard]] std::chrono::nanoseconds timeout() const override { return options_.timeout; }

 private:
  Status run_where_it_lies(const Call& call) override;
  /// A call that is not the last one again. Out of line, as is run_again: the comparison before them saves few
  /// registers.
  [[gnu::noinline]] Status place_and_run(const Call& call);
  friend class Formation;
  static constexpr std::int64_t kLeastChosenBytes = 16 * 1024;  ///< of scratch; a plan with less stores plainly
  static constexpr int kPatience = 256;  ///< polls of one word before a spinning wait looks around

  /// A call on its way.
  struct Pending {
    BoundEntry* entry = nullptr;
    const std::byte* input = nullptr;  ///< of the segment at hand
    std::byte* output = nullptr;
    Factor factor{};  ///< of premul_sum
    Count segment = 0;
    bool is_walking = false;  ///< the segment at hand has started
    bool is_complete = false;
  };

  /// A segment under way.
  struct Operation {
    std::uint64_t number = 0;
    std::uint64_t ticket = 0;  ///< of its call
    PlanView plan;
    Lane lane;
    bool is_complete = false;
    bool streams_staging = false;
    Clock::time_point start;  ///< where the store choice wants it
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
    bool is_ready = false;  ///< and what `machine_` is prepared for
    PlanView plan;          ///< of the first segment
  };

  /// Makes `last_` this call. Errors: of post.
  Status accept(const Call& call);
  Status accept_new(const Call& call, const PlanCache::Key& key);
  [[nodiscard]] bool is_last(const Call& call, const PlanCache::Key& key) const {
    return key == last_.key && call.input == last_.input && call.output == last_.output && last_.entry != nullptr;
  }
  /// Whether a call can be run again without a look at what it is: nothing is under way, and the machine is prepared.
  [[nodiscard]] bool can_run_again() const { return last_.is_ready && first_ == next_; }
  /// Runs the last call again. Requires: can_run_again.
  [[gnu::noinline]] Status run_again();
  /// Its part before the first wait that takes long; false: it stopped there and is pending.
  bool begin_again();
  /// Puts the last accepted call at the end of the ring.
  void enqueue();
  void append(const Pending& call);
  /// A line must not be written anew before it was heard, and what ranks of other hosts have completed is not told.
  /// That follows from having heard all of them in an operation at most K/2 before (may_start). Where the calls have no
  /// such operation there, put_fence puts one before the last accepted call: on all ranks alike, for they make the same
  /// calls.
  Status put_fence();
  [[nodiscard]] Pending& pending(std::uint64_t ticket) { return ring_[ticket & ring_mask_]; }
  [[nodiscard]] const Pending& pending(std::uint64_t ticket) const { return ring_[ticket & ring_mask_]; }
  void grow();

  /// Walks and starts what it can, looking `patience` times at what a step waits for where there is but one thing to
  /// do.
  void progress(int patience);
  /// Takes what has come over links, and sends what is owed. A link that carries nothing any more ends the
  /// communicator.
  void receive_over_links();
  void send_over_links(Mood mood);
  [[nodiscard]] bool is_drained() const { return network_ == nullptr || network_->is_drained(); }
  /// binder_.bind, with the channels that the plans use.
  [[nodiscard]] Result<BoundEntry*> bind(const Call& call, const PlanCache::Key& key);
  /// Of a network that nothing is in flight on: others may be on their way to this rank all the same.
  void move_links() {
    receive_over_links();
    send_over_links(Mood::idle);
  }
  /// progress of all other communicators of the rank; whether there was nothing to do.
  bool progress_others();
  /// That, and progress.
  void progress_all();
  [[nodiscard]] int patience() const {
    return options_.waiting == Waiting::spin && !machine_.has_links() ? kPatience : 0;
  }
  [[nodiscard]] Operation& operation(std::uint64_t number) { return operations_[number & (generations_ - 1)]; }
  [[nodiscard]] const Operation& operation(std::uint64_t number) const {
    return operations_[number & (generations_ - 1)];
  }
  /// Starts the next segment; false where there is none or it may not start yet.
  [[nodiscard]] bool start_next();
  [[nodiscard]] bool may_start(const PlanHeader& header, std::uint64_t number);
  [[nodiscard]] bool generation_is_free(std::uint64_t number);
  void prepare_machine(const Operation& operation);
  /// Walks an operation as far as it goes; true when it is complete.
  bool walk(Operation& operation);
  bool walk_at_pace(Operation& operation);
  bool walk_slowly(Operation& operation);
  void finish(Operation& operation);
  void finish_segment(Pending& call);
  void finish_chosen(const Operation& operation, StoreChoice& stores);
  [[nodiscard]] bool is_complete(std::uint64_t ticket) const { return ticket < first_ || pending(ticket).is_complete; }
  [[nodiscard]] bool is_complete(const Ticket& ticket) const;
  /// is_complete, for a caller that asks: then what was told of waiting for it no longer holds.
  [[nodiscard]] bool is_over(const Ticket& ticket);
  [[nodiscard]] bool is_busy() const { return failed_.is_ok() && (first_ != next_ || !transfers_.is_idle()); }
  /// Whether the word that the machine stopped at is all that this rank waits for, and has not changed.
  [[nodiscard]] bool is_nothing_new() const;
  /// Wakes the ranks that sleep, where there are any: something may have happened that they wait for.
  void ring() {
    if (bell_.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }
  void wake();
  /// Tells the waiting ranks, and the pace, that this rank has gone on.
  void tell_moved();
  [[nodiscard]] bool is_held_back() { return hooks_.pace != nullptr && hooks_.pace->holds_back(); }
  /// Sleeps until somebody rings, for a tick at most; not where there is something to do.
  void park();
  [[nodiscard]] Result<Work> post_transfer(const Transfers::Request& request, Count count, int tag);
  enum class AtDeadline : std::uint8_t { fails, returns };
  /// wait or wait_for, once it is known to take a while. False: the deadline has passed, where that is no failure.
  Result<bool> wait_long(const Ticket& ticket, std::chrono::nanoseconds timeout, AtDeadline at_deadline);
  /// Where the world has lost a rank of another host that is in this group, the group has lost it too.
  void hear_of_losses();
  /// The part of waiting that is not in a hurry: failures, other ranks' aborts, the deadline.
  Status check(const Ticket& ticket, Clock::time_point deadline);
  /// What a wait does in which nothing has moved since then: it sleeps where others want the core.
  void rest(Clock::time_point waits_since, Clock::time_point now, int idle_looks);
  Status check_own_failures();
  /// What makes every wait of this communicator end: failures of this rank, and those that others have announced.
  Status check_failures();
  /// Ends the communicator for all its ranks, because this rank failed, or the one that its network names.
  Status fail(Status status);
  Status fail(Status status, int who);

  // What is told and found out off the fast path: engine_tell.cc.

  /// Writes the call that starts as operation `number` into the journal. One that starts for the first time is compared
  /// with those of the ranks beside this one: it may wait for nobody.
  void note(BoundEntry& entry, std::uint64_t number);
  void note_counts(const BlockTable& blocks, std::uint64_t number);
  void tell(const Standing& standing);
  /// The wait that was told of is over.
  void withdraw_standing();
  /// Now and then in a wait in which nothing moves: tells where this rank stands, and fails where a rank that it waits
  /// for makes another call.
  Status look(const Ticket& ticket);
  Status compare_with(int peer);
  /// At the deadline: mismatch where any rank makes another call, else timeout, with what all ranks have told.
  Status give_up(const Ticket& ticket);
  /// With the fields that differ, where the journals still hold the calls.
  [[nodiscard]] Status explained(const Status& mismatch) const;
  [[nodiscard]] Standing standing_of(const Ticket& ticket) const;
  [[nodiscard]] Standing standing_of(const Operation& operation) const;
  /// Of the oldest operation that is pending, or that has not started for want of a generation.
  [[nodiscard]] Standing oldest_standing() const;
  /// The first rank that has completed the least.
  [[nodiscard]] int slowest() const;
  /// Of a call, for its operation `number`.
  [[nodiscard]] CallNote note_for(std::uint64_t ticket, std::uint64_t number) const;

  std::unique_ptr<Domain> own_domain_;
  Domain& domain_;
  Doorbell& bell_;
  int rank_;
  int ranks_;
  std::uint64_t generations_;
  CommunicatorOptions options_;
  Hooks hooks_;
  std::shared_ptr<Company> company_;
  Network* network_;  // null on one host
  CpuMachine machine_;
  Transfers transfers_;
  Binder binder_;
  std::vector<CompletionLine*> lines_;  // [rank]
  CompletionLine behind_link_{};        // that of ranks behind a link, who never have to be waited for (check_reach)
  Journal& journal_;
  const BoundEntry* noted_ = nullptr;  // the journal's last call
  std::vector<Pending> ring_;          // a power of two
  std::uint64_t ring_mask_ = 0;
  std::uint64_t first_ = 0;     // ticket of the oldest call that is not complete
  std::uint64_t starting_ = 0;  // ticket of the oldest call that has segments to start
  std::uint64_t next_ = 0;      // ticket of the next call
  Accepted last_;
  std::vector<Operation> operations_;     // of the numbers in (completed_, completed_ + in_flight_], by number mod K
  const Operation* prepared_ = nullptr;   // what machine_ is prepared for, where something is in flight
  std::uint64_t completed_ = 0;           // all operations up to this number are complete here
  std::uint64_t in_flight_ = 0;           // started after that, complete or not
  std::uint64_t free_until_;              // number of the last operation whose generation is known to be free
  std::uint64_t heard_until_;             // the same, from what was heard of all ranks alone
  std::uint64_t since_all_ = 0;           // operations posted after the last one that waits for all ranks
  std::unique_ptr<Schedule> fence_;       // of what put_fence puts; null before the first
  std::array<std::int32_t, 2> fenced_{};  // its buffers
  bool channels_are_taken_ = false;       // by an operation in flight
  std::uint64_t moves_ = 0;               // walks that went on: where it stands still, nothing happens
  bool is_forming_ = false;               // a group: see GroupFormation
  unsigned tests_ = 0;                    // in vain
  unsigned looks_at_others_ = 0;
  std::uint64_t seen_progress_ = ~std::uint64_t{0};  // of this rank, when it last was asked for
  Clock::duration until_look_{};                     // the last interval
  Clock::time_point look_at_;                        // where nothing has moved by then
  CrowdWatch crowd_;
  bool is_told_ = false;  // the journal has a standing
  Status failed_;         // first error; sticky; nothing is accepted after it
};

}  // namespace tutti
