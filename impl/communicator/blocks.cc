// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/blocks.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

#include "impl/communicator/binder.h"
#include "impl/communicator/block_joining.h"
#include "impl/communicator/block_world.h"
#include "impl/communicator/requests.h"
#include "impl/transports/failure.h"
#include "impl/transports/hosts.h"

namespace tutti {
namespace {

/// Calls `is_done`, which returns a Result<bool>, until it is true. Errors: its; what `give_up` returns at the
/// deadline.
template <class IsDone, class GiveUp>
Status wait_until(BlockWorld& world, IsDone is_done, GiveUp give_up, std::chrono::nanoseconds timeout) {
  constexpr int kTestsBetweenLooks = 64;
  const Clock::time_point deadline = Clock::now() + timeout;
  bool is_late = false;
  for (int tests = 1;; ++tests) {
    TUTTI_ASSIGN_OR_RETURN(const bool done, is_done());
    if (done) return {};
    if (is_late) return give_up();
    sched_yield();
    is_late = tests % kTestsBetweenLooks == 0 && Clock::now() > deadline;
    if (is_late) world.end_launches();
  }
}

class BlockCommunicator final : public Communicator {
 public:
  BlockCommunicator(std::shared_ptr<BlockWorld> world, int rank)
      : world_(std::move(world)),
        rank_(rank),
        binder_({.domain = world_->domain(),
                 .rank = rank,
                 .is_on_devices = true,
                 .most_staged_bytes = world_->most_staged_bytes()},
                world_->common().options, world_->common().hooks.after_bind) {}
  ~BlockCommunicator() override { world_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return world_->ranks(); }
  [[nodiscard]] int world_rank(int rank) const override { return world_->domain().world_rank(rank); }

  Status prepare(const Call& call) override {
    TUTTI_RETURN_IF_ERROR(world_->failed());
    TUTTI_RETURN_IF_ERROR(check_shared(call));
    PlanCache::Key key = PlanCache::key_of(call);
    if (binder_.find(call, key) != nullptr) return {};
    TUTTI_RETURN_IF_ERROR(binder_.check_call(call));
    return binder_.bind(call, key).status();
  }

  Result<Work> post(const Call& call) override {
    for (const void* const buffer : {call.input, static_cast<const void*>(call.output)}) {
      TUTTI_RETURN_IF_ERROR(check_alignment(buffer, call.dtype));
    }
    TUTTI_RETURN_IF_ERROR(check_not_forming(to_string(call.collective)));
    TUTTI_ASSIGN_OR_RETURN(BoundEntry* const entry, bound(call));
    BlockWorld::Posted posted{.entry = entry,
                              .input = static_cast<const std::byte*>(call.input),
                              .output = static_cast<std::byte*>(call.output)};
    if (call.op == Op::premul_sum) std::memcpy(posted.factor.data(), call.factor, size_of(call.dtype));
    TUTTI_ASSIGN_OR_RETURN(const std::uint64_t number, world_->post(rank_, posted));
    return handle({.number = number, .kind = is_capturing_ ? Ticket::Kind::captured : Ticket::Kind::collective});
  }

  [[nodiscard]] bool has_graphs() const override { return !world_->is_shared(); }
  Status begin_capture() override {
    TUTTI_RETURN_IF_ERROR(world_->begin_capture(rank_));
    is_capturing_ = true;
    return {};
  }
  Result<std::unique_ptr<CapturedCalls>> end_capture() override {
    is_capturing_ = false;
    TUTTI_ASSIGN_OR_RETURN(auto graph, world_->end_capture(rank_));
    return std::unique_ptr<CapturedCalls>(std::make_unique<Captured>(world_, rank_, std::move(graph)));
  }
  Result<Work> post_captured(CapturedCalls& calls) override {
    TUTTI_RETURN_IF_ERROR(check_not_forming("a graph"));
    const BlockWorld::Posted posted{.graph = dynamic_cast<const Captured&>(calls).graph()};
    TUTTI_ASSIGN_OR_RETURN(const std::uint64_t number, world_->post(rank_, posted));
    return handle({.number = number});
  }

  Status run(const Call& call) override {
    TUTTI_ASSIGN_OR_RETURN(Work work, post(call));
    return work.wait();
  }

  Status abort(int rank, std::string_view reason) override {
    if (rank < 0 || rank >= ranks()) {
      return error(Code::invalid_argument, "abort because of rank {}, which is out of range: 0 to {}", rank,
                   ranks() - 1);
    }
    world_->abort(rank_, rank, reason);
    return {};
  }

  Result<Work> post_send(const void* buffer, Count count, Dtype dtype, int peer, int tag) override {
    auto* const bytes = const_cast<std::byte*>(static_cast<const std::byte*>(buffer));  // is not written
    return post_message({.rank = rank_, .peer = peer, .is_send = true, .buffer = bytes, .dtype = dtype}, count, tag);
  }
  Result<Work> post_recv(void* buffer, Count count, Dtype dtype, int peer, int tag) override {
    auto* const bytes = static_cast<std::byte*>(buffer);
    return post_message({.rank = rank_, .peer = peer, .buffer = bytes, .dtype = dtype}, count, tag);
  }

  Result<std::unique_ptr<GroupFormation>> post_split(int colour, int key) override {
    return form({.colour = colour, .key = key});
  }
  Result<std::unique_ptr<GroupFormation>> post_new_group(std::span<const int> ranks) override {
    TUTTI_RETURN_IF_ERROR(check_group(ranks, world_->ranks()));
    const auto at = std::ranges::find(ranks, rank_);
    const bool is_member = at != ranks.end();
    return form({.colour = is_member ? 0 : -1,
                 .key = is_member ? static_cast<int>(at - ranks.begin()) : 0,
                 .list = hash_of_group(ranks)});
  }

  Result<void*> alloc_shared(std::size_t bytes) override { return world_->domain().alloc_shared(rank_, bytes); }
  void free_shared(void* pointer) override { world_->domain().free_shared(rank_, pointer); }
  [[nodiscard]] const Algorithm& choose(const Call& call) const override { return *binder_.choose(call).algorithm; }
  [[nodiscard]] std::string report() const override { return world_->report(); }

 protected:
  Result<bool> test(const Ticket& ticket) override {
    if (ticket.kind == Ticket::Kind::captured) {
      return error(Code::invalid_argument, "a call that was captured is not under way: what was captured is posted");
    }
    Result<bool> tested = ticket.kind == Ticket::Kind::collective
                              ? world_->is_complete(rank_, ticket.number)
                              : world_->is_complete(message_of(ticket), ticket.number);
    if (tested.is_ok() && !tested.value() && world_->needs_cores()) sched_yield();
    return tested;
  }
  Status wait(const Ticket& ticket, std::chrono::nanoseconds timeout) override {
    return wait_until(
        *world_, [&] { return test(ticket); }, [&] { return world_->give_up(rank_, position(ticket)); }, timeout);
  }
  Result<bool> wait_for(const Ticket& ticket, std::chrono::nanoseconds timeout) override {
    for (const Clock::time_point begin = Clock::now();;) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_done, test(ticket));
      if (is_done) return true;
      if (Clock::now() - begin >= timeout) return false;
      sched_yield();
    }
  }
  [[nodiscard]] std::string position(const Ticket& ticket) const override {
    if (ticket.kind == Ticket::Kind::captured) return "captured";
    return ticket.kind == Ticket::Kind::collective ? world_->position(rank_, ticket.number)
                                                   : world_->position(message_of(ticket), ticket.number);
  }
  [[nodiscard]] std::chrono::nanoseconds timeout() const override { return world_->common().options.timeout; }

 private:
  class Captured final : public CapturedCalls {
   public:
    Captured(std::shared_ptr<BlockWorld> world, int rank, std::shared_ptr<BlockWorld::Graph> graph)
        : world_(std::move(world)), rank_(rank), graph_(std::move(graph)) {}
    ~Captured() override { world_->forget(rank_, std::move(graph_)); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    [[nodiscard]] const std::shared_ptr<BlockWorld::Graph>& graph() const { return graph_; }

   private:
    std::shared_ptr<BlockWorld> world_;
    int rank_;
    std::shared_ptr<BlockWorld::Graph> graph_;
  };

  class Formation final : public GroupFormation {
   public:
    Formation(BlockCommunicator& parent, std::uint64_t number) : parent_(parent), number_(number) {
      parent_.is_forming_ = true;
    }
    ~Formation() override {
      if (parent_.is_forming_ && parent_.world_->is_shared()) {
        const std::string name = parent_.world_->domain().name_of(parent_.rank_);
        (void)parent_.world_->stop(error(Code::aborted, "{} gave up forming a group", name));
      }
      parent_.is_forming_ = false;
    }
    Formation(const Formation&) = delete;
    Formation& operator=(const Formation&) = delete;

    [[nodiscard]] Result<bool> test() override {
      const Result<bool> formed = parent_.world_->is_formed(parent_.rank_, number_);
      if (formed.is_ok() && !formed.value()) return false;
      parent_.is_forming_ = false;
      TUTTI_RETURN_IF_ERROR(formed.status());
      if (is_taken_) return true;
      is_taken_ = true;
      BlockWorld::Membership mine = parent_.world_->membership(parent_.rank_, number_);
      if (mine.world != nullptr) group_ = std::make_unique<BlockCommunicator>(std::move(mine.world), mine.rank);
      return true;
    }
    Status wait(std::chrono::nanoseconds timeout) override {
      const auto give_up = [&] {
        return parent_.world_->give_up(parent_.rank_, "waits for the others to form a group");
      };
      return wait_until(
          *parent_.world_, [&] { return test(); }, give_up, timeout);
    }
    [[nodiscard]] std::unique_ptr<Communicator> take() override { return std::move(group_); }

   private:
    BlockCommunicator& parent_;
    std::uint64_t number_;
    bool is_taken_ = false;
    std::unique_ptr<Communicator> group_;
  };

  [[nodiscard]] Status check_not_forming(std::string_view what) const {
    if (!is_forming_) return {};
    return error(Code::invalid_argument, "{} while a group is being formed of this communicator: wait for it first",
                 what);
  }

  /// A thread of a GPU takes an element at once, which must not begin within another one.
  static Status check_alignment(const void* buffer, Dtype dtype) {
    const std::size_t off = reinterpret_cast<std::uintptr_t>(buffer) % size_of(dtype);
    if (off == 0) return {};
    return error(Code::invalid_argument,
                 "a buffer of {} begins {} bytes after a multiple of {}: thread blocks take whole elements only",
                 to_string(dtype), off, size_of(dtype));
  }

  [[nodiscard]] Result<BoundEntry*> bound(const Call& call) {
    TUTTI_RETURN_IF_ERROR(world_->failed());
    TUTTI_RETURN_IF_ERROR(check_shared(call));
    PlanCache::Key key = PlanCache::key_of(call);
    BoundEntry* entry = binder_.find(call, key);
    if (entry == nullptr) TUTTI_RETURN_IF_ERROR(binder_.check_call(call));
    TUTTI_RETURN_IF_ERROR(binder_.check_buffers(call));
    if (entry == nullptr) {
      if (binder_.is_full() && world_->is_idle(rank_)) binder_.forget_v_forms();
      const Result<BoundEntry*> bound = binder_.bind(call, key);
      // Only rank 0 proves, so the others may be on their way already.
      if (bound.status().code() == Code::refuted && world_->is_shared()) return world_->stop(bound.status());
      TUTTI_ASSIGN_OR_RETURN(entry, bound);
    }
    if (call.buffers == Buffers::shared) TUTTI_RETURN_IF_ERROR(binder_.check_addresses(call, *entry));
    return entry;
  }

  Status check_shared(const Call& call) const {
    if (call.buffers == Buffers::private_ || !world_->is_shared()) return {};
    return error(Code::unavailable,
                 "shared buffers of ranks on devices of several processes: what alloc_shared gives lies on the host");
  }

  [[nodiscard]] Result<Work> post_message(BlockWorld::Message message, Count count, int tag) {
    TUTTI_RETURN_IF_ERROR(world_->failed());
    TUTTI_RETURN_IF_ERROR(check_alignment(message.buffer, message.dtype));
    TUTTI_ASSIGN_OR_RETURN(message.bytes, bytes_of_transfer({.is_send = message.is_send,
                                                             .peer = message.peer,
                                                             .ranks = world_->ranks(),
                                                             .buffer = message.buffer,
                                                             .count = count,
                                                             .dtype = message.dtype,
                                                             .tag = tag}));
    if (tag != 0) {
      return error(Code::unavailable, "{} rank {} with tag {}: messages of thread blocks have no tags other than 0",
                   message.is_send ? "send to" : "receive from", message.peer, tag);
    }
    TUTTI_ASSIGN_OR_RETURN(const std::uint64_t number, world_->post(message));
    return handle(
        {.number = number, .peer = message.peer, .kind = message.is_send ? Ticket::Kind::send : Ticket::Kind::receive});
  }

  [[nodiscard]] BlockWorld::Message message_of(const Ticket& ticket) const {
    return {.rank = rank_, .peer = ticket.peer, .is_send = ticket.kind == Ticket::Kind::send};
  }

  [[nodiscard]] Result<std::unique_ptr<GroupFormation>> form(const BlockWorld::Wish& wish) {
    TUTTI_ASSIGN_OR_RETURN(const std::uint64_t number, world_->form(rank_, wish));
    return std::unique_ptr<GroupFormation>(std::make_unique<Formation>(*this, number));
  }

  Status run_where_it_lies(const Call& call) override {
    return run(placed_where_it_lies(call, rank_, world_->ranks()));
  }

  std::shared_ptr<BlockWorld> world_;
  int rank_;
  Binder binder_;
  bool is_forming_ = false;
  bool is_capturing_ = false;
};

Status check_blocks_of_rank(const TeamShape& blocks) {
  if (blocks.lanes < 1 || blocks.lanes > kMostLanes) {
    return error(Code::invalid_argument, "{} blocks of a rank: 1 to {}", blocks.lanes, kMostLanes);
  }
  if (blocks.threads < 1) return error(Code::invalid_argument, "{} threads of a block: at least 1", blocks.threads);
  const bool is_a_line = blocks.packet_bytes % static_cast<std::int64_t>(kDeviceLine) == 0;
  if (!is_a_line || blocks.packet_bytes < 0 || blocks.packet_bytes > kMostPacketBytes) {
    return error(Code::invalid_argument, "{} bytes of packets: a multiple of {} from 0 to {}", blocks.packet_bytes,
                 kDeviceLine, kMostPacketBytes);
  }
  return {};
}

/// Errors: also timeout.
Status wait_for_all(BlockJoining& joining, const Domain& domain, int rank, std::chrono::nanoseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_done, joining.test());
    if (is_done) return {};
    if (Clock::now() > deadline) {
      return error(Code::timeout, "{} gave up: waits for {} to say what it has on its device", domain.name_of(rank),
                   domain.name_of(joining.awaited()));
    }
    sched_yield();
  }
}

}  // namespace

Result<std::unique_ptr<Communicator>> create_on_own_device(Domain& domain, int rank, Device& device,
                                                           const TeamShape& blocks, const CommunicatorOptions& options,
                                                           const Hooks& hooks) {
  TUTTI_RETURN_IF_ERROR(check_blocks_of_rank(blocks));
  const int ranks = domain.shape().ranks;
  if (ranks > kMostDevices) {
    return error(Code::unavailable, "{} ranks with a device each: at most {}", ranks, kMostDevices);
  }
  BlockWorld::Common common{.devices = {&device}, .blocks = blocks, .options = options, .hooks = hooks};
  common.options.lanes = blocks.lanes;
  const std::shared_ptr<Domain> shared(&domain, [](Domain*) {});
  auto call = std::make_unique<BlockRollCall>(domain, rank);
  BlockJoining joining(shared, rank, common, *call);
  const Status joined = wait_for_all(joining, domain, rank, options.timeout);
  if (!joined.is_ok()) {
    (void)announce_failure(domain, rank, rank, text_for_others(domain, rank, joined));
    return joined;
  }
  const BlockWorld::Membership mine = joining.take();
  mine.world->set_roll_call(std::move(call));
  return std::unique_ptr<Communicator>(std::make_unique<BlockCommunicator>(mine.world, rank));
}

Result<std::vector<std::unique_ptr<Communicator>>> create_as_blocks(Domain& domain, std::span<Device* const> devices,
                                                                    const TeamShape& blocks,
                                                                    const CommunicatorOptions& options,
                                                                    const Hooks& hooks) {
  const int ranks = domain.shape().ranks;
  TUTTI_RETURN_IF_ERROR(check_blocks_of_rank(blocks));
  if (domain.hosts() != nullptr && domain.hosts()->count() > 1) {
    return error(Code::unavailable, "thread blocks on {} hosts: one device has all of them", domain.hosts()->count());
  }
  const int most = std::min(ranks, kMostDevices);
  if (devices.empty() || devices.size() > static_cast<std::size_t>(most)) {
    return error(Code::invalid_argument, "{} devices for {} ranks: 1 to {}", devices.size(), ranks, most);
  }
  for (Device* const device : devices) {
    for (Device* const other : devices) {
      if (other != device) TUTTI_RETURN_IF_ERROR(device->reach(*other));
    }
  }
  BlockWorld::Common common{
      .devices = {devices.begin(), devices.end()}, .blocks = blocks, .options = options, .hooks = hooks};
  common.options.lanes = blocks.lanes;
  std::vector<int> device_of;
  for (int rank = 0; rank < ranks; ++rank) {
    device_of.push_back(device_dealt(rank, ranks, static_cast<int>(devices.size())));
  }
  const std::shared_ptr<Domain> shared(&domain, [](Domain*) {});
  TUTTI_ASSIGN_OR_RETURN(const auto world, BlockWorld::make(shared, common, device_of));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<BlockCommunicator>(world, rank));
  }
  return communicators;
}

}  // namespace tutti
