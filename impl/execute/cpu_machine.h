// SPDX-License-Identifier: Apache-2.0
// The Machine of a CPU rank: what the steps of a plan do to memory that the ranks of a domain share. One per rank; it
// executes one operation at a time and keeps the rank's ends of its channels between operations.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "impl/execute/step.h"
#include "impl/reduce/kernels.h"
#include "impl/reduce/scale.h"
#include "impl/transports/domain.h"
#include "impl/transports/link.h"

namespace tutti {

/// What a spinning wait does between two looks.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Fetches a line of memory for stores that come later, away from the ranks that read it last.
inline void fetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));  // what GCC makes of the builtin fetches to read
#else
  __builtin_prefetch(line, 1);
#endif
}

/// A processor that expects to go on loads what comes later at once. Not across this.
inline void load_nothing_ahead() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// [0, bytes) of `source` to `destination`, 1 <= bytes <= kLineBytes, by two overlapping moves: no call and no loop.
inline void copy_small(std::byte* destination, const std::byte* source, std::size_t bytes) {
  const auto both_ends = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
    std::array<std::byte, width> first, last;
    std::memcpy(first.data(), source, width);
    std::memcpy(last.data(), source + bytes - width, width);
    std::memcpy(destination, first.data(), width);
    std::memcpy(destination + bytes - width, last.data(), width);
  };
  if (bytes >= 32) return both_ends(std::integral_constant<std::size_t, 32>());
  if (bytes >= 16) return both_ends(std::integral_constant<std::size_t, 16>());
  if (bytes >= 8) return both_ends(std::integral_constant<std::size_t, 8>());
  if (bytes >= 4) return both_ends(std::integral_constant<std::size_t, 4>());
  for (std::size_t i = 0; i < bytes; ++i) destination[i] = source[i];
}

class CpuMachine {
 public:
  /// With less, a line that comes from another core's cache is sooner there than one that comes from memory.
  static constexpr std::size_t kLeastMovingScratch = 8 * 1024;

  CpuMachine(Domain& domain, int rank);

  /// What operations on the same plan and buffers have in common.
  struct Work {
    PlanView plan;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    Kernel kernel = nullptr;
    const void* kernel_context = nullptr;
    SmallKernel small_kernel = nullptr;  ///< where the op is not none
    Scale scale = nullptr;               ///< where the op is premul_sum
    Factor factor{};
    bool copies_once = false;  ///< peers reach private buffers where they lie: references are addresses of their owner
  };
  void prepare(const Work& work) {
    kernel_ = work.kernel;
    arguments_.context = work.kernel_context;
    small_kernel_ = work.small_kernel;
    scale_ = work.scale;
    factor_ = work.factor;
    copies_once_ = work.copies_once;
    reference_base_ = work.copies_once ? 0 : heap_address_;
    hash_ = work.plan.header().hash;
    place_scratch(static_cast<std::size_t>(work.plan.header().scratch_bytes));
    auto* const input = const_cast<std::byte*>(work.input);
    if (mine_[static_cast<std::size_t>(Space::input)] != input ||
        mine_[static_cast<std::size_t>(Space::output)] != work.output) {
      exchange_.ops = nullptr;
    }
    mine_[static_cast<std::size_t>(Space::input)] = input;
    mine_[static_cast<std::size_t>(Space::output)] = work.output;
  }
  /// Operation `number` (of the communicator's sequence, from 1) does the prepared work.
  /// Requires: where the plan uses its generation, every rank has completed operation number - K.
  void begin(std::uint64_t number) {
    begin_lines(number);
    begin_spaces(number);
  }

  /// begin and, of a plan that is an exchange, `advance` in one: what only a stopped walk needs is left for then.
  /// Requires: those of begin; the prepared plan; a lane at its start.
  bool begin_exchange(std::uint64_t number, Lane& lane, const PlanView& plan) {
    begin_lines(number);
    const bool is_known = knows(plan);
    if (is_known && exchange_known(lane)) [[likely]]
      return true;
    begin_spaces(number);
    return !is_known && exchange(lane, plan);
  }

  /// How often a step that must wait looks again before it gives up: 0 where the caller has something else to do.
  void set_patience(int polls) { patience_ = polls; }

  /// Whether the word that stopped the last walk has changed enough for another one. A spinning wait looks at it in
  /// place of the whole way to that word.
  [[nodiscard]] bool may_go_on() const {
    return awaited_ == nullptr || awaited_->load(std::memory_order_acquire) >= awaited_value_;
  }

  /// Processes of the ranks, whose memory this one reads and writes through the kernel. Empty: all are in this process.
  void set_processes(std::vector<int> processes) { processes_ = std::move(processes); }

  /// Whether MOVEs into scratch use non-temporal stores.
  void set_streams_staging(bool streams) { streams_staging_ = streams; }

  /// Plans that this machine has walked are no more.
  void forget_plans() {
    resolved_ = {};
    exchange_.ops = nullptr;
  }

  /// Empty, or why the operation cannot go on (mismatch naming the peer).
  [[nodiscard]] const Status& failure() const { return failure_; }

  /// The rank with a plan that was found to be another; -1 where there is no such rank.
  [[nodiscard]] int disagrees_with() const { return disagrees_with_; }

  // ---- ranks that share no memory with this one (link.h)

  /// Whether there are any: known when the machine is made. Nothing of a step looks further where there are none.
  [[nodiscard]] bool has_links() const { return has_links_; }
  [[nodiscard]] bool is_behind_link(int rank) const {
    return has_links_ && links_[static_cast<std::size_t>(rank)] != nullptr;
  }
  /// Makes the ends of the channels to ranks behind links that the plan uses: most pairs of a large world never talk.
  /// Errors: resource.
  Status open_channels(const PlanView& plan);

  // ---- what step.h asks for

  [[nodiscard]] bool heard(int rank, std::uint16_t phase) {
    return heard({.rank = rank, .lines = seats_[static_cast<std::size_t>(rank)].lines}, flag_base_ | phase);
  }

  void announce(const PlanOp& op, const PlanOperand* operand) {
    FlagLine& line = *my_line_;
    if ((op.marks & mark_exposes) != 0) {
      const auto reference = [&](Space space) {
        return reinterpret_cast<std::uintptr_t>(mine_[static_cast<std::size_t>(space)]) - reference_base_;
      };
      auto* const references = reinterpret_cast<References*>(line.payload.data());
      references->input.store(reference(Space::input), std::memory_order_relaxed);
      references->output.store(reference(Space::output), std::memory_order_relaxed);
    }
    if ((op.marks & mark_identifies) != 0) line.hash = hash_;
    announce_on(line, op.phase);
    if (has_links_) [[unlikely]]
      announce_over_links(operand->ranks);
  }

  [[nodiscard]] bool channels_ready(const PlanOp& op, const PlanOperand* operand);
  void move(const PlanOp& op, const PlanOperand* operand) {
    const auto bytes = static_cast<std::size_t>(op.bytes);
    if (op.shortcut == Shortcut::copy) {
      copy_small(mine(operand[0]), mine(operand[1]), bytes);
    } else if (op.shortcut == Shortcut::reduce) {
      std::array<const std::byte*, kMostShortcutSources> sources;
      const std::byte** source = sources.data();
      for (int i = 1; i <= op.sources; ++i) source = resolve_near(operand[i], source);
      small_kernel_(mine(operand[0]), sources.data(), static_cast<int>(source - sources.data()), bytes);
    } else if (op.bytes != 0) {
      move_by_kernel(op, operand);
    }
  }
  void close_channels(const PlanOp& op, const PlanOperand* operand);
  /// As tutti::exchange, with operands that are found once for all operations on the same plan and buffers.
  bool exchange(Lane& lane, const PlanView& plan) {
    if (!knows(plan) && !resolve_exchange(plan)) return tutti::exchange(lane, plan, *this);
    return exchange_known(lane);
  }

 private:
  /// Where plans with that much scratch have it in an area of a generation.
  void place_scratch(std::size_t bytes) {
    scratch_places_ = 1;
    if (scratch_area_ == 0 || bytes < kLeastMovingScratch) return;
    scratch_step_ = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    scratch_places_ = scratch_area_ / scratch_step_;
  }
  void begin_lines(std::uint64_t number) {
    const std::uint64_t generation = number & generation_mask_;
    flag_base_ = number << 16U;
    line_offset_ = generation * sizeof(FlagLine);
    my_line_ = my_lines_ + generation;
    next_line_ = my_lines_ + ((number + 1) & generation_mask_);
    awaited_ = nullptr;
  }
  void begin_spaces(std::uint64_t number) {
    scratch_offset_ = (number & generation_mask_) * scratch_stride_;
    if (scratch_places_ > 1) scratch_offset_ += (number >> generation_bits_) % scratch_places_ * scratch_step_;
    mine_[static_cast<std::size_t>(Space::scratch)] = my_scratch_ + scratch_offset_;
    mine_[static_cast<std::size_t>(Space::line)] = my_line_->payload.data();
  }
  void announce_on(FlagLine& line, std::uint16_t phase) {
    line.flag.store(flag_base_ | phase, std::memory_order_release);
    load_nothing_ahead();  // a peer's line that is fetched while the peer writes it has to go back to it first
  }
  struct Awaited {
    int rank;
    FlagLine* lines;
  };
  [[nodiscard]] bool heard(const Awaited& from, std::uint64_t wanted) {
    const FlagLine& line = at_generation(from.lines);
    if (line.flag.load(std::memory_order_acquire) < wanted && !await(line.flag, wanted)) return false;
    fetch_to_write(next_line_);  // it comes during the local work before the next announcement
    if (line.hash == hash_) return true;
    fail_on_mismatch(from.rank);
    return false;
  }
  [[gnu::noinline, gnu::cold]] void announce_over_links(RankSet to);
  [[gnu::noinline, gnu::cold]] void publish_over_link(const PlanOp& op, const PlanOperand& operand);
  [[gnu::noinline, gnu::cold]] void release_over_link(int peer);
  /// Of an exchange what lasts from one operation on a plan and its buffers to the next.
  struct Exchange {
    /// In a rank's line of generation 0, or in a buffer of mine.
    struct Source {
      const std::byte* address;
      std::size_t in_line;  ///< all bits, or none
    };
    const PlanOp* ops = nullptr;  ///< nullptr: of no plan, or of other buffers
    std::uint16_t announced_phase = 0;
    std::uint16_t awaited_phase = 0;
    const std::byte* contribution = nullptr;
    std::size_t bytes = 0;   ///< of it
    std::size_t offset = 0;  ///< and where it goes in my line
    std::byte* result = nullptr;
    std::size_t result_bytes = 0;
    int awaited_count = 0;
    std::size_t source_count = 0;
    std::array<Awaited, kMostShortcutSources> awaited;
    std::array<Source, kMostShortcutSources> sources;
  };
  [[nodiscard]] bool knows(const PlanView& plan) const { return exchange_.ops == plan.ops(); }
  /// The sources are looked up while the peers' lines are on their way. Inlined: a call saves and restores registers.
  [[gnu::always_inline]] bool exchange_known(Lane& lane) {
    const Exchange& known = exchange_;
    FlagLine& line = *my_line_;
    copy_small(line.payload.data() + known.offset, known.contribution, known.bytes);
    line.hash = hash_;
    announce_on(line, known.announced_phase);
    std::array<const std::byte*, kMostShortcutSources> sources;
    for (std::size_t i = 0; i < known.source_count; ++i) {
      sources[i] = known.sources[i].address + (line_offset_ & known.sources[i].in_line);
    }
    const std::uint64_t wanted = flag_base_ | known.awaited_phase;
    for (int i = 0; i < known.awaited_count; ++i) {
      if (heard(known.awaited[static_cast<std::size_t>(i)], wanted)) continue;
      lane = {.at = 2, .cursor = i};
      return false;
    }
    small_kernel_(known.result, sources.data(), static_cast<int>(known.source_count), known.result_bytes);
    return true;
  }
  /// False where the operands are not all in lines and in my buffers, or there are too many, or peers are shown more
  /// than a line.
  bool resolve_exchange(const PlanView& plan);
  bool append_source(const PlanOperand& operand);
  /// My end of one direction to or from a peer.
  struct ChannelEnd {
    ChannelMemory memory;
    std::uint64_t slices = 0;         ///< sent or received so far
    std::uint64_t slot = 0;           ///< slices modulo the number of slots
    std::uint64_t consumed_seen = 0;  ///< sender: the receiver's count when last read
  };

  /// A rank's line for this operation; `lines` are its lines of all generations.
  [[nodiscard]] FlagLine& at_generation(FlagLine* lines) const {
    return *reinterpret_cast<FlagLine*>(reinterpret_cast<std::byte*>(lines) + line_offset_);
  }
  [[nodiscard]] FlagLine& line_of(const Seat& seat) const { return at_generation(seat.lines); }
  /// Waits in place as long as there is patience; false leaves the word for may_go_on.
  bool await(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    for (int polls = patience_; polls > 0; --polls) {
      pause();
      if (word.load(std::memory_order_acquire) >= value) return true;
    }
    awaited_ = &word;
    awaited_value_ = value;
    return false;
  }
  [[nodiscard]] SlotHeader& slot(const ChannelEnd& end) const {
    return *reinterpret_cast<SlotHeader*>(end.memory.slots + end.slot * slot_stride_);
  }
  [[nodiscard]] std::byte* payload(const ChannelEnd& end, std::int64_t rest_bytes) const {
    SlotHeader& header = slot(end);
    if (rest_bytes <= static_cast<std::int64_t>(SlotHeader::kInline)) return header.payload.data();
    return reinterpret_cast<std::byte*>(&header + 1);
  }
  void pass(ChannelEnd& end) const {
    ++end.slices;
    if (++end.slot == slots_) end.slot = 0;
  }
  [[nodiscard]] std::byte* mine(const PlanOperand& operand) const {
    return mine_[static_cast<std::size_t>(operand.space)] + operand.offset;
  }
  /// Appends the addresses of an operand that is mine or in flag lines.
  const std::byte** resolve_near(const PlanOperand& operand, const std::byte** out) const {
    if (operand.is_mine) {
      *out = mine(operand);
      return out + 1;
    }
    int rank = operand.ranks.first;
    for (const std::byte** const end = out + operand.ranks.n; out != end; ++out) {
      *out = line_of(seats_[static_cast<std::size_t>(rank)]).payload.data() + operand.offset;
      rank = operand.ranks.after(rank, ranks_);
    }
    return out;
  }
  /// Fills destinations_, sources_ and their numbers.
  void resolve_all(const PlanOp& op, const PlanOperand* operand);
  [[nodiscard]] bool is_resolved(const PlanOp& op) const;
  /// Bit i: address i of the destinations is in scratch. (Addresses beyond 64 have no bit.)
  [[nodiscard]] static std::uint64_t scratch_destinations(const PlanOp& op, const PlanOperand* operand);
  void move_by_kernel(const PlanOp& op, const PlanOperand* operand);
  /// As move_by_kernel where a source is to be multiplied by the factor first.
  void move_scaled(const PlanOp& op, const PlanOperand* operand);
  /// As move_by_kernel where peers' buffers are memory of other processes.
  void move_between_processes(const PlanOp& op, const PlanOperand* operand);
  void move_in_pieces();
  [[nodiscard]] bool is_copied(const Status& copied);
  /// Appends the addresses of `operands` on all ranks of their sets; `ends` are those of their direction.
  template <class Pointer>
  Pointer* resolve(std::span<const PlanOperand> operands, const std::vector<ChannelEnd>& ends, const PlanOp& op,
                   Pointer* out);
  template <class Pointer>
  Pointer* resolve_remote(const PlanOperand& operand, const std::vector<ChannelEnd>& ends, const PlanOp& op,
                          Pointer* out);
  [[nodiscard]] bool is_free(ChannelEnd& end);
  [[nodiscard]] bool is_full(const ChannelEnd& end, int peer, const PlanOp& op);
  void fail_on_mismatch(int peer);
  void fail_on_length(int peer, std::uint64_t sent, std::int64_t expected);

  Domain& domain_;
  int rank_;
  int ranks_;
  std::uint64_t generation_mask_;
  std::uint64_t slots_;
  std::size_t slot_stride_;
  unsigned generation_bits_;
  std::size_t scratch_stride_;
  std::size_t scratch_area_;
  std::vector<Seat> seats_;
  std::vector<ChannelEnd> senders_;    // [peer]
  std::vector<ChannelEnd> receivers_;  // [peer]
  bool has_links_ = false;
  std::vector<Link*> links_;  // [rank], null where it shares this memory; empty without links
  FlagLine* my_lines_;
  std::byte* my_scratch_;
  std::uintptr_t heap_address_;
  std::vector<std::byte*> destinations_;  // of the MOVE at hand
  std::vector<const std::byte*> sources_;
  KernelArguments arguments_;
  /// What destinations_ and sources_ were resolved from. A call that is repeated on the same buffers finds them so.
  struct Resolved {
    const PlanOp* op = nullptr;  ///< nullptr: not to be found again
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };
  struct KnownReference {
    const std::byte* at;  ///< in generation 0
    std::uintptr_t value;
  };
  Resolved resolved_;
  Exchange exchange_;
  std::vector<KnownReference> references_;
  /// An address of a MOVE's that is memory of another process.
  struct Far {
    std::size_t at;  ///< in destinations_ or sources_
    int process;
    std::byte* address;  ///< there
  };
  template <class Pointer>
  void find_far(std::span<const PlanOperand> operands, const std::vector<Pointer>& addresses,
                std::vector<Far>& far) const;
  std::vector<int> processes_;  // [rank]
  std::vector<Far> far_destinations_;
  std::vector<Far> far_sources_;
  std::vector<std::byte*> near_destinations_;
  std::vector<std::byte> pieces_;  // what came from other processes, or goes there

  // Of the work and the operation at hand.
  Kernel kernel_ = nullptr;
  SmallKernel small_kernel_ = nullptr;
  Scale scale_ = nullptr;
  Factor factor_{};
  bool copies_once_ = false;
  std::uintptr_t reference_base_ = 0;  // what references count from
  std::size_t scratch_step_ = 0;
  std::size_t scratch_places_ = 1;
  std::uint64_t flag_base_ = 0;  // its flag at phase 0
  std::uint64_t hash_ = 0;
  std::size_t line_offset_ = 0;     // of its generation among a rank's lines
  std::size_t scratch_offset_ = 0;  // and in a rank's scratch
  FlagLine* my_line_ = nullptr;
  FlagLine* next_line_ = nullptr;
  std::array<std::byte*, 5> mine_{};  // [Space]

  int patience_ = 0;
  bool streams_staging_ = false;
  const std::atomic<std::uint64_t>* awaited_ = nullptr;  // all words only grow
  std::uint64_t awaited_value_ = 0;
  Status failure_;
  int disagrees_with_ = -1;
};

}  // namespace tutti
