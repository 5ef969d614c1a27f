// SPDX-License-Identifier: Apache-2.0
// The Machine of a rank that is a team of threads: a thread block of a GPU, or threads of the host (target.h). All
// threads of the team walk the plan together. Thread i polls the i-th rank of a WAIT; then the team votes. Waits block
// here, with a deadline, since nobody else could turn to another lane.
//
// What one thread of the team wrote is seen by the others after a barrier. There is one before a MOVE that follows a
// MOVE, before a SIGNAL, and around the slots of channels. A release of one thread after a barrier covers the whole
// team.
//
// Where ranks lie on several devices a rank tells each of them (device_world.h): thread i tells device i.
//
// Packets are no order between other words: each is stored and looked at by itself. So an operation that goes by them
// is told to be complete, as those are that do not wait for everybody.
//
// A Reduce provides  void operator()(const DeviceMove&, int thread, int threads) const,  which does one thread's part.
// The file is long, for one class template has all that a team does; host and device compile the same text.
#pragma once

#include "impl/execute/device_world.h"
#include "impl/execute/packets.h"
#include "impl/execute/step.h"

namespace tutti {

/// One MOVE with its addresses: for every element every destination <- the sources, reduced left to right.
struct DeviceMove {
  std::byte* const* destinations = nullptr;
  const std::byte* const* sources = nullptr;
  int destination_count = 0;
  int source_count = 0;
  std::int64_t bytes = 0;
  int ranks = 1;  ///< avg divides by it where the MOVE is final
  bool is_final = false;
  int scaled = -1;  ///< the source that is multiplied by `factor` first; -1: none is
  std::uint64_t factor = 0;
};

/// What a launch does: `operations` one after the other, each by all `parties`.
struct DeviceWork {
  const DeviceCall* calls = nullptr;  ///< [operation][party]
  const int* ranks = nullptr;         ///< [party]; nullptr: party i is rank i
  int parties = 1;
  int operations = 1;
  /// Of two ranks, over a channel alone: no operation of a sequence. Its number, for whoever reads why one has failed;
  /// 0: it is none. Other launches are counted on the device, since a graph makes one again as it is.
  std::uint64_t transfer = 0;
  DeviceLimits limits;
};

/// Addresses that a MOVE may have on `ranks` ranks: four operands a side, each a set of at most all of them, and
/// staging cuts a set in three.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr int most_device_addresses(int ranks) { return 2 * (4 * ranks + 8); }

template <class Target, class Reduce>
class DeviceMachine {
 public:
  /// Where the team stands. `addresses` has room for most_device_addresses, and belongs to the team.
  struct Place {
    int rank = 0;
    int lane = 0;
    std::byte** addresses = nullptr;
  };
  TUTTI_HOST_DEVICE DeviceMachine(const DeviceWorld& world, const DeviceWork& work, const Place& place, Target& target,
                                  const Reduce& reduce)
      : world_(world),
        work_(work),
        place_(place),
        target_(target),
        reduce_(reduce),
        state_(&world.state(place.rank, place.lane)),
        number_(state_->number),
        free_until_(state_->free_until) {
    sent_ = reinterpret_cast<std::uint64_t*>(state_ + 1);
    received_ = sent_ + world.ranks;
    released_ = received_ + world.ranks;
  }

  /// Segment `segment` of `call`, which is the launch's operation `operation`, begins. False: the ranks have stopped.
  TUTTI_HOST_DEVICE bool begin(const DeviceCall& call, const PlanView& plan, std::int64_t segment, int operation) {
    const PlanHeader& header = plan.header();
    operation_ = operation;
    segment_ = segment;
    hash_ = header.hash;
    synchronises_ = header.synchronises && !call.by_packets;
    factor_ = call.factor;
    if (!is_transfer()) ++number_;
    generation_ = number_ & (static_cast<std::uint64_t>(world_.generations) - 1);
    line_ = &world_.line(world_.here, place_.rank, place_.lane, generation_);
    told_ = identified_ = 0;
    is_exposed_ = is_identified_ = false;
    const std::int64_t shift = segment * call.segment_bytes;
    mine_[static_cast<int>(Space::input)] =
        call.input == nullptr ? nullptr : const_cast<std::byte*>(call.input) + shift;
    mine_[static_cast<int>(Space::output)] = call.output == nullptr ? nullptr : call.output + shift;
    mine_[static_cast<int>(Space::scratch)] = world_.scratch(place_.rank, place_.lane, generation_);
    mine_[static_cast<int>(Space::channel)] = nullptr;
    mine_[static_cast<int>(Space::line)] = line_->payload;
    if (is_transfer()) return true;
    const bool renews =
        world_.packet_bytes > 0 && renews_packets(number_, static_cast<std::uint64_t>(world_.generations));
    if ((header.uses_generation || renews) && !generation_is_free()) return false;
    if (renews) renew_packets();
    return true;
  }

  /// The segment that begin began is complete.
  TUTTI_HOST_DEVICE void end() {
    if (is_transfer()) return;
    const auto generations = static_cast<std::uint64_t>(world_.generations);
    if (synchronises_) {
      // Whoever announced a phase of this operation had completed the one before it.
      const std::uint64_t until = number_ - 1 + generations;
      if (until > free_until_) free_until_ = until;
      return;
    }
    meet();
    for (int device = target_.thread(); device < world_.devices; device += target_.threads()) {
      store(world_.completion(device, place_.rank, place_.lane), number_, device != world_.here);
    }
  }

  /// The launch is over for this team: what the next one needs is kept.
  TUTTI_HOST_DEVICE void leave() {
    target_.barrier();
    if (target_.thread() != 0) return;
    state_->number = number_;
    state_->free_until = free_until_;
    if (!is_transfer()) ++state_->launches;
  }

  /// Walks a plan that has a PacketForm on all ranks. False: the ranks have stopped.
  TUTTI_HOST_DEVICE bool exchange_packets(const PlanView& plan) {
    const PlanOp* const op = plan.ops();
    const PlanOperand* const operands = plan.operands();
    const PlanOperand* const staged = operands + op[0].first_operand;
    meet();  // nobody reads any more what was unpacked before
    tell_packets(op[0], staged[1], operands[op[1].first_operand].ranks);
    if (!hear_packets(op[0], op[2], operands[op[2].first_operand].ranks)) return false;
    unpacked_offset_ = staged[0].offset;
    is_unpacked_ = true;
    for (std::uint32_t at = 3; at < plan.header().ops; ++at) move(op[at], operands + op[at].first_operand);
    is_unpacked_ = false;
    return true;
  }

  // ---- what step.h asks for

  TUTTI_HOST_DEVICE bool heard_all(const RankSet& set, std::uint16_t phase) {
    const std::uint64_t wanted = number_ << 16U | phase;
    bool is_lost = false;
    for (int i = target_.thread(); i < set.n && !is_lost; i += target_.threads()) {
      const int rank = set.at(i, world_.ranks);
      DeviceLine& line = world_.line(world_.here, rank, place_.lane, generation_);
      is_lost = !await(&line.flag, wanted, {.kind = DeviceFailure::phase, .peer = rank, .wanted = phase});
      if (is_lost || line.hash == hash_) continue;
      fail({.kind = DeviceFailure::other_call, .peer = rank});
      is_lost = true;
    }
    return agree(!is_lost);
  }

  TUTTI_HOST_DEVICE void announce(const PlanOp& op, const PlanOperand* operand) {
    meet();
    const std::uint64_t flag = number_ << 16U | op.phase;
    if (target_.thread() == 0) {
      // Once: a partner that heard of it may read it at any time.
      if ((op.marks & mark_exposes) != 0 && !is_exposed_) {
        auto* const references = reinterpret_cast<std::uint64_t*>(line_->payload);
        references[0] = reinterpret_cast<std::uint64_t>(mine_[static_cast<int>(Space::input)]);
        references[1] = reinterpret_cast<std::uint64_t>(mine_[static_cast<int>(Space::output)]);
        is_exposed_ = true;
      }
      if ((op.marks & mark_identifies) != 0 && !is_identified_) {
        line_->hash = hash_;
        is_identified_ = true;
      }
    }
    if (world_.devices > 1) announce_afar(operand->ranks, flag);
    if (target_.thread() == 0) Target::store_release(&line_->flag, flag);
  }

  TUTTI_HOST_DEVICE bool channels_ready(const PlanOp& op, const PlanOperand* operand) {
    bool is_ready = true;
    if (target_.thread() == 0) {
      for (int i = 0; i < op.destinations + op.sources && is_ready; ++i) {
        if (operand[i].space != Space::channel) continue;
        const int peer = operand[i].ranks.first;
        is_ready = i < op.destinations ? slot_is_free(peer, op) : slot_is_full(peer, op);
      }
    }
    return agree(is_ready);
  }

  TUTTI_HOST_DEVICE void move(const PlanOp& op, const PlanOperand* operand) {
    if (op.bytes == 0) return;
    meet();
    DeviceMove move{.destinations = place_.addresses,
                    .bytes = op.bytes,
                    .ranks = world_.ranks,
                    .is_final = (op.marks & mark_final) != 0,
                    .factor = factor_};
    int next = 0;
    for (int i = 0; i < op.destinations; ++i) {
      if (operand[i].is_mine && operand[i].space == Space::line) told_ = 0;  // no device has it as it will be
      next = resolve(op, operand[i], false, next);
    }
    move.destination_count = next;
    for (int i = op.destinations; i < op.destinations + op.sources; ++i) {
      const bool is_my_input = operand[i].is_mine && operand[i].space == Space::input;
      if (is_my_input && move.scaled < 0 && (op.marks & mark_scales) != 0) move.scaled = next - move.destination_count;
      next = resolve(op, operand[i], true, next);
    }
    move.sources = place_.addresses + move.destination_count;
    move.source_count = next - move.destination_count;
    target_.barrier();
    reduce_(move, target_.thread(), target_.threads());
    is_apart_ = true;
  }

  TUTTI_HOST_DEVICE void close_channels(const PlanOp& op, const PlanOperand* operand) {
    target_.barrier();
    if (target_.thread() == 0) {
      for (int i = 0; i < op.destinations + op.sources; ++i) {
        if (operand[i].space != Space::channel) continue;
        const int peer = operand[i].ranks.first;
        i < op.destinations ? publish(peer, op) : release(peer);
      }
    }
    target_.barrier();
    is_apart_ = false;
  }

 private:
  /// What is waited for, for the record of a failure.
  struct Awaited {
    std::uint64_t kind = DeviceFailure::none;
    int peer = 0;
    std::uint64_t wanted = 0;
    std::uint64_t found = 0;
    std::uint64_t step = 0;
  };

  /// A barrier, where a thread may have written since the last one.
  TUTTI_HOST_DEVICE void meet() {
    if (is_apart_) target_.barrier();
    is_apart_ = false;
  }
  TUTTI_HOST_DEVICE bool agree(bool is_fine) {
    is_apart_ = false;
    return !target_.any(!is_fine);
  }

  TUTTI_HOST_DEVICE static std::uint64_t load(std::uint64_t* word, bool is_afar) {
    return is_afar ? Target::load_acquire_afar(word) : Target::load_acquire(word);
  }
  TUTTI_HOST_DEVICE static void store(std::uint64_t* word, std::uint64_t value, bool is_afar) {
    is_afar ? Target::store_release_afar(word, value) : Target::store_release(word, value);
  }

  /// Tells the other devices on which ranks of `set` lie: the line where they do not have it as it is, then the flag.
  TUTTI_HOST_DEVICE void announce_afar(const RankSet& set, std::uint64_t flag) {
    target_.barrier();  // the line is as thread 0 has left it
    for (int device = target_.thread(); device < world_.devices; device += target_.threads()) {
      if (device == world_.here || !has_hearers(set, device)) continue;
      DeviceLine& there = world_.line(device, place_.rank, place_.lane, generation_);
      const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(device);
      if ((told_ & bit) == 0) {
        const auto* const from = reinterpret_cast<const std::uint64_t*>(line_->payload);
        auto* const to = reinterpret_cast<std::uint64_t*>(there.payload);
        for (std::size_t word = 0; word < DeviceLine::kWords; ++word) to[word] = from[word];
        told_ |= bit;
      }
      if ((identified_ & bit) == 0) there.hash = hash_;  // once: whoever hears a phase may read it at any time
      identified_ |= bit;
      Target::store_release_afar(&there.flag, flag);
    }
    is_apart_ = true;  // a thread may still read the line
  }
  [[nodiscard]] TUTTI_HOST_DEVICE bool has_hearers(const RankSet& set, int device) const {
    for (int i = 0; i < set.n; ++i) {
      if (world_.device_of_rank(set.at(i, world_.ranks)) == device) return true;
    }
    return false;
  }

  /// The word lies on this device; whoever stores it is the peer.
  TUTTI_HOST_DEVICE bool await(std::uint64_t* word, std::uint64_t value, const Awaited& what) {
    const bool is_afar = world_.is_afar(what.peer);
    return await([word, value, is_afar] { return load(word, is_afar) >= value; }, what);
  }
  template <class IsThere>
  TUTTI_HOST_DEVICE bool await(const IsThere& is_there, const Awaited& what) {
    constexpr int kPollsBetweenLooks = 256;
    std::uint64_t deadline = 0;
    for (int polls = 1;; ++polls) {
      if (is_there()) return true;
      Target::pause();
      if (polls % kPollsBetweenLooks != 0) continue;
      const std::uint64_t stop = Target::load_relaxed(world_.abort_word);
      if (stop == stop_now) return false;
      const std::uint64_t now = Target::now_ns();
      if (deadline == 0) deadline = now + work_.limits.timeout_ns;
      if (now < deadline && stop != stop_and_tell) continue;
      fail(what);
      return false;
    }
  }

  /// How many packets a message is.
  [[nodiscard]] TUTTI_HOST_DEVICE static std::int64_t packets_of(const PlanOp& message) {
    return (message.bytes + kPacketData - 1) / kPacketData;
  }

  /// As if operation number - K had written all words, which no later one takes for its own before they are renewed.
  TUTTI_HOST_DEVICE void renew_packets() {
    const std::uint64_t old = packet_of(number_ - static_cast<std::uint64_t>(world_.generations), 0);
    const auto words = static_cast<std::int64_t>(world_.packet_bytes) / kPacketData;
    for (int device = 0; device < world_.devices; ++device) {
      std::uint64_t* const to = world_.packets(device, place_.rank, place_.lane, generation_);
      for (std::int64_t at = target_.thread(); at < words; at += target_.threads()) Target::store_relaxed(to + at, old);
    }
    is_apart_ = true;
  }

  /// The message, from `source` of mine, to every device on which a rank of `hearers` lies, and to myself.
  TUTTI_HOST_DEVICE void tell_packets(const PlanOp& message, const PlanOperand& source, const RankSet& hearers) {
    const std::byte* const from = mine_[static_cast<int>(source.space)] + source.offset;
    std::byte* const mine = world_.unpacked(place_.rank, place_.lane, place_.rank);
    const bool is_aligned = reinterpret_cast<std::uint64_t>(from) % kPacketData == 0;
    const auto data_at = [&](std::int64_t at) {
      const std::int64_t rest = message.bytes - at * kPacketData;
      std::uint32_t data = 0;
      if (is_aligned && rest >= kPacketData) {
        __builtin_memcpy(&data, __builtin_assume_aligned(from + at * kPacketData, kPacketData), kPacketData);
        return data;
      }
      for (std::int64_t byte = 0; byte < kPacketData && byte < rest; ++byte) {
        data |= static_cast<std::uint32_t>(from[at * kPacketData + byte]) << static_cast<unsigned>(8 * byte);
      }
      return data;
    };
    for (int device = 0; device < world_.devices; ++device) {
      if (!has_hearers(hearers, device)) continue;
      std::uint64_t* const to = world_.packets(device, place_.rank, place_.lane, generation_);
      for (std::int64_t at = target_.thread(); at < packets_of(message); at += target_.threads()) {
        Target::store_relaxed(to + at, packet_of(number_, data_at(at)));
      }
    }
    for (std::int64_t at = target_.thread(); at < packets_of(message); at += target_.threads()) {
      unpack(mine, at, data_at(at));
    }
  }
  TUTTI_HOST_DEVICE static void unpack(std::byte* to, std::int64_t at, std::uint32_t data) {
    __builtin_memcpy(__builtin_assume_aligned(to + at * kPacketData, kPacketData), &data, kPacketData);
  }

  /// Every thread takes some packets of all ranks of `set`.
  TUTTI_HOST_DEVICE bool hear_packets(const PlanOp& message, const PlanOp& wait, const RankSet& set) {
    const std::int64_t words = packets_of(message);
    bool is_lost = false;
    for (std::int64_t i = target_.thread(); i < set.n * words && !is_lost; i += target_.threads()) {
      const int rank = set.at(static_cast<int>(i / words), world_.ranks);
      std::uint64_t* const word = world_.packets(world_.here, rank, place_.lane, generation_) + i % words;
      std::uint64_t packet = 0;
      const auto is_there = [this, word, &packet] {
        packet = Target::load_relaxed(word);
        return is_packet_of(number_, packet);
      };
      is_lost = !await(is_there, {.kind = DeviceFailure::phase, .peer = rank, .wanted = wait.phase});
      unpack(world_.unpacked(place_.rank, place_.lane, rank), i % words, static_cast<std::uint32_t>(packet));
    }
    return agree(!is_lost);
  }

  /// Two may fail at once: the first one is recorded.
  TUTTI_HOST_DEVICE void fail(const Awaited& what) {
    DeviceFailure& failure = *world_.failure;
    if (Target::swap_if(&failure.taken, 0, 1)) {
      failure.rank = static_cast<std::uint64_t>(place_.rank);
      failure.peer = static_cast<std::uint64_t>(what.peer);
      failure.lane = static_cast<std::uint64_t>(place_.lane);
      failure.launch = is_transfer() ? work_.transfer : state_->launches + 1;
      failure.is_transfer = is_transfer() ? 1 : 0;
      failure.operation = static_cast<std::uint64_t>(operation_);
      failure.segment = static_cast<std::uint64_t>(segment_);
      failure.step = what.step;
      failure.wanted = what.wanted;
      failure.found = what.found;
      Target::store_release_to_host(&failure.kind, what.kind);
    }
    Target::store_release_to_host(world_.abort_word, stop_now);
  }

  /// Operation s may write its generation once every rank has completed s - K.
  TUTTI_HOST_DEVICE bool generation_is_free() {
    if (number_ <= free_until_) return true;
    const std::uint64_t least = number_ - static_cast<std::uint64_t>(world_.generations);
    bool is_free = true;
    for (int rank = target_.thread(); rank < world_.ranks && is_free; rank += target_.threads()) {
      if (rank == place_.rank) continue;
      is_free = await(world_.completion(world_.here, rank, place_.lane), least,
                      {.kind = DeviceFailure::generation, .peer = rank, .wanted = least});
    }
    free_until_ = number_;
    return agree(is_free);
  }

  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* channel_to(int peer) const {
    return world_.channel(place_.rank, peer, place_.lane);
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* channel_from(int peer) const {
    return world_.channel(peer, place_.rank, place_.lane);
  }
  /// The slot of slice `slice`, counted from 0.
  [[nodiscard]] TUTTI_HOST_DEVICE DeviceSlot& slot(std::byte* channel, std::uint64_t slice) const {
    const std::uint64_t place = slice % static_cast<std::uint64_t>(world_.slots);
    return *reinterpret_cast<DeviceSlot*>(channel + place * world_.slot_stride());
  }

  TUTTI_HOST_DEVICE bool slot_is_free(int peer, const PlanOp& op) {
    const auto slots = static_cast<std::uint64_t>(world_.slots);
    if (sent_[peer] - released_[peer] < slots) return true;
    std::uint64_t* const count = world_.released(place_.rank, peer, place_.lane);
    const std::uint64_t wanted = sent_[peer] - slots + 1;
    const Awaited what{.kind = DeviceFailure::room,
                       .peer = peer,
                       .wanted = static_cast<std::uint64_t>(op.rest_bytes),
                       .step = op.step};
    if (!await(count, wanted, what)) return false;
    released_[peer] = load(count, world_.is_afar(peer));
    return true;
  }

  TUTTI_HOST_DEVICE bool slot_is_full(int peer, const PlanOp& op) {
    DeviceSlot& full = slot(channel_from(peer), received_[peer]);
    const auto expected = static_cast<std::uint64_t>(op.rest_bytes);
    Awaited what{.kind = DeviceFailure::data, .peer = peer, .wanted = expected, .step = op.step};
    if (!await(&full.message, received_[peer] + 1, what)) return false;
    if (full.hash == hash_ && full.bytes == expected) return true;
    what.kind = full.hash == hash_ ? DeviceFailure::other_length : DeviceFailure::other_call;
    what.found = full.bytes;
    fail(what);
    return false;
  }

  TUTTI_HOST_DEVICE void publish(int peer, const PlanOp& op) {
    DeviceSlot& head = slot(channel_to(peer), sent_[peer]);
    head.bytes = static_cast<std::uint64_t>(op.rest_bytes);
    head.hash = hash_;
    store(&head.message, ++sent_[peer], world_.is_afar(peer));
  }
  TUTTI_HOST_DEVICE void release(int peer) {
    store(world_.released(peer, place_.rank, place_.lane), ++received_[peer], world_.is_afar(peer));
  }

  /// Writes the addresses of an operand from place `next` of the team's list on; returns the place after them. Each
  /// thread writes some of them.
  TUTTI_HOST_DEVICE int resolve(const PlanOp& op, const PlanOperand& operand, bool is_source, int next) const {
    const bool is_set = !operand.is_mine && operand.space != Space::channel;
    const int n = is_set ? operand.ranks.n : 1;
    for (int i = target_.thread(); i < n; i += target_.threads()) {
      const bool is_heard = is_unpacked_ && (operand.space == Space::scratch || operand.space == Space::line);
      place_.addresses[next + i] = is_heard          ? unpacked(operand, i)
                                   : operand.is_mine ? mine_[static_cast<int>(operand.space)] + operand.offset
                                   : operand.space == Space::channel
                                       ? in_slot(op, operand, is_source)
                                       : of_rank(operand.ranks.at(i, world_.ranks), operand);
    }
    return next + n;
  }

  /// What rank `index` of the operand has told by packets.
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* unpacked(const PlanOperand& operand, int index) const {
    const int rank = operand.is_mine ? place_.rank : operand.ranks.at(index, world_.ranks);
    return world_.unpacked(place_.rank, place_.lane, rank) + (operand.offset - unpacked_offset_);
  }

  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* in_slot(const PlanOp& op, const PlanOperand& operand,
                                                     bool is_source) const {
    const int peer = operand.ranks.first;
    DeviceSlot& head = is_source ? slot(channel_from(peer), received_[peer]) : slot(channel_to(peer), sent_[peer]);
    std::byte* const begin =
        op.rest_bytes <= DeviceSlot::kInline ? head.payload : reinterpret_cast<std::byte*>(&head + 1);
    return begin + operand.offset;
  }

  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* of_rank(int rank, const PlanOperand& operand) const {
    if (operand.space == Space::scratch) return world_.scratch(rank, place_.lane, generation_) + operand.offset;
    DeviceLine& line = world_.line(world_.here, rank, place_.lane, generation_);
    if (operand.space == Space::line) return line.payload + operand.offset;
    const auto* const references = reinterpret_cast<const std::uint64_t*>(line.payload);
    const bool is_input = operand.space == Space::input;
    if (rank == place_.rank) return mine_[static_cast<int>(operand.space)] + operand.offset;
    return reinterpret_cast<std::byte*>(references[is_input ? 0 : 1]) + operand.offset;
  }

  [[nodiscard]] TUTTI_HOST_DEVICE bool is_transfer() const { return work_.transfer != 0; }

  const DeviceWorld& world_;
  const DeviceWork& work_;
  Place place_;
  Target& target_;
  const Reduce& reduce_;
  LaneState* state_;
  std::uint64_t* sent_;
  std::uint64_t* received_;
  std::uint64_t* released_;
  std::uint64_t number_;
  std::uint64_t free_until_;
  bool is_apart_ = false;  // a thread may have written what another one has not seen

  // Of the segment at hand.
  int operation_ = 0;
  std::int64_t segment_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t factor_ = 0;
  std::uint64_t generation_ = 0;
  bool synchronises_ = false;
  DeviceLine* line_ = nullptr;
  // The devices, a bit each, that have the line as it is, and its hash: of those that this thread tells.
  std::uint64_t told_ = 0;
  std::uint64_t identified_ = 0;
  bool is_exposed_ = false, is_identified_ = false;  // the own line has the references, and the hash
  std::byte* mine_[5] = {};           // [Space]
  bool is_unpacked_ = false;          // scratch stands for what was heard by packets,
  std::int64_t unpacked_offset_ = 0;  // of which this is the beginning
};

/// What the team of party `party` does in a launch. False: the ranks have stopped, and the world is not used again.
template <class Target, class Reduce>
TUTTI_HOST_DEVICE bool run_lane(const DeviceWorld& world, const DeviceWork& work, int party,
                                const typename DeviceMachine<Target, Reduce>::Place& place, Target& target,
                                const Reduce& reduce) {
  DeviceMachine<Target, Reduce> machine(world, work, place, target, reduce);
  for (int operation = 0; operation < work.operations; ++operation) {
    const DeviceCall& call = work.calls[operation * work.parties + party];
    for (std::int64_t segment = place.lane; segment < call.segments; segment += world.lanes) {
      const PlanView& plan = segment < call.full_segments ? call.full : call.tail;
      Lane lane;
      if (!machine.begin(call, plan, segment, operation)) return false;
      if (!(call.by_packets ? machine.exchange_packets(plan) : advance(lane, plan, machine))) return false;
      machine.end();
    }
  }
  machine.leave();
  return true;
}

}  // namespace tutti
