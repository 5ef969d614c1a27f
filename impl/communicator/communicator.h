// SPDX-License-Identifier: Apache-2.0
// The public API. A communicator is one rank's seat in a group of ranks. A call on it is an asynchronous operation, and
// a blocking call is that operation waited for. README.md: operations in flight, sends and receives, groups.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/algorithms/algorithm.h"
#include "impl/collective/blocks.h"
#include "impl/collective/collective.h"
#include "impl/communicator/selection.h"
#include "impl/execute/message.h"
#include "impl/schedule/bind.h"
#include "impl/transports/domain.h"
#include "impl/transports/hosts.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"
#include "impl/types/visibility.h"

namespace tutti {

using Clock = std::chrono::steady_clock;

/// How a wait passes its time: `spin` where every rank has a core, `yield` at once where ranks outnumber cores or share
/// a thread. Both sleep where others want the core (crowd_watch.h).
enum class Waiting : std::uint8_t { spin, yield };

struct CommunicatorOptions {
  Waiting waiting = Waiting::spin;
  int cores = 1;  ///< that the ranks may use together; `auto` chooses by it, so it is the same on all ranks
  /// Of ranks of one host: see Problem. The same on all ranks.
  int ranks_per_cache = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of every blocking call
  std::int64_t cache_bytes = 0;  ///< last-level cache; beyond it, stores to user buffers stream; 0: never
  Count segment = 0;             ///< elements per block and segment; 0: the largest that fits
  int lanes = 1;                 ///< of ranks that are thread blocks: blocks of a rank
  /// What `auto` looks into first; the same on all ranks. Null: none.
  std::shared_ptr<const SelectionTable> table = nullptr;
  /// Processes of the ranks of the world, if each reads and writes the memory of all others through the kernel
  /// (peer_memory.h): then their private buffers need not be staged. The same on all ranks. Null: not so.
  std::shared_ptr<const std::vector<int>> processes = nullptr;
  /// Prove each plan when rank 0 first binds it (P <= 1024); an error of a call when it is refuted.
#ifdef NDEBUG
  bool prove_plans = false;
#else
  bool prove_plans = true;
#endif
};

/// One collective call. The same on all ranks but for the addresses.
/// Shapes: `input` holds input_blocks x count elements, `output` output_blocks x count (impl/collective/collective.h).
/// In place, the smaller of input and output is a block of the larger (in_place_block); for broadcast they are one
/// buffer on every rank. Never overlapping otherwise. A buffer that holds no block on this rank may be null.
struct Call {
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::f32;
  Op op = Op::none;
  int root = 0;
  Count count = 0;  ///< elements per block; unused in a v form
  const void* input = nullptr;
  void* output = nullptr;
  const void* factor = nullptr;  ///< premul_sum: one element, this rank's own, looked at while the call is posted
  bool is_in_place = false;      ///< reduce, gather, scatter: of the root; the others need not know
  Buffers buffers = Buffers::private_;
  const Schedule* schedule = nullptr;  ///< must outlive the communicator; nullptr: `auto` chooses by table
  /// v forms: where this rank's blocks lie, looked at until post or prepare returns. Whether a rank is in place is then
  /// its own affair.
  const BlockTable* blocks = nullptr;
};

/// A block of an operand that is a list of blocks, wherever they lie, as torch's list arguments are.
struct ConstPart {
  const void* address = nullptr;  ///< may be null where count is 0
  Count count = 0;
};
struct Part {
  void* address = nullptr;
  Count count = 0;
};

/// `call` with the placement that its addresses show, as post wants it: for calls that are not v forms.
[[nodiscard]] TUTTI_API Call placed_where_it_lies(const Call& call, int rank, int ranks);

/// How a collective reduces: an op, which converts to it, or premul_sum with this rank's factor.
struct Reduction {
  Op op = Op::none;
  const void* factor = nullptr;

  Reduction(Op which) : op(which) {}  // NOLINT(google-explicit-constructor): an op is all that most reductions are
  Reduction(Op which, const void* by) : op(which), factor(by) {}
};
/// The sum of all inputs, each multiplied by its rank's `*factor`, one element of the call's dtype.
[[nodiscard]] inline Reduction premul_sum(const void* factor) { return {Op::premul_sum, factor}; }

class Communicator;
class GroupFormation;

/// A posted operation. Copyable; valid as long as its communicator. Its buffers may be touched again when it is
/// complete. Handles are tested and waited for in any order, each as often as one likes. Doing so makes progress with
/// all that this rank has posted, on this communicator and on all others of its world.
class TUTTI_API Work {
 public:
  /// Makes progress once; true when complete. Errors: as wait, but for timeout.
  [[nodiscard]] Result<bool> test();
  /// Errors: timeout saying where every rank stands (see Communicator::report), aborted naming the rank that failed,
  /// mismatch naming the peer, the operation, and the fields of the two calls that differ.
  Status wait(std::chrono::nanoseconds timeout);
  /// With the communicator's timeout.
  Status wait();
  /// As wait, but the communicator goes on when the time is over: false, and the operation is not complete. Errors: as
  /// wait, but for timeout.
  [[nodiscard]] Result<bool> wait_for(std::chrono::nanoseconds timeout);
  /// Where the operation stands, for reports: "step 3 of 7: waits for phase 1 of rank 2".
  [[nodiscard]] std::string position() const;
  /// That of its communicator.
  [[nodiscard]] std::string report() const;

 private:
  friend class Communicator;
  /// What a communicator knows an operation by.
  struct Ticket {
    enum class Kind : std::uint8_t { collective, send, receive, captured };
    std::uint64_t number = 0;  ///< of the calls; of the sends to `peer`, or the receives from it
    std::int32_t peer = 0;
    Kind kind = Kind::collective;
  };
  Work(Communicator* communicator, Ticket ticket) : communicator_(communicator), ticket_(ticket) {}
  Communicator* communicator_;
  Ticket ticket_;
};

/// Calls of a rank that were captured: the same addresses, whatever lies there. It goes before its communicator, when
/// nothing of it is in flight.
class CapturedCalls {
 public:
  virtual ~CapturedCalls() = default;
};

/// Belongs to one thread, and so do all others of the rank: its world, and the groups made of it. Destroyed before its
/// operations are complete, it aborts them on all ranks.
class TUTTI_API Communicator {
 public:
  /// Rank `rank` of the world of `domain` (all its ranks). The domain must outlive the communicator and all groups.
  [[nodiscard]] static Result<std::unique_ptr<Communicator>> create(Domain& domain, int rank,
                                                                    CommunicatorOptions options);
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// Where its ranks are; null: on one host.
  [[nodiscard]] virtual const Hosts* hosts() const { return nullptr; }
  /// As problems of this communicator have it (collective.h).
  [[nodiscard]] int ranks_per_host() const { return hosts() == nullptr ? 0 : hosts()->ranks_per_host(); }
  [[nodiscard]] virtual int ranks_per_cache() const { return 0; }
  /// The number in the world of a rank of this communicator.
  [[nodiscard]] virtual int world_rank(int rank) const = 0;

  /// Binds `call` ahead of time, whatever its addresses; post then finds its plan. Each rank by itself: where one rank
  /// is refused and another is not, the caller must see to it that none posts. Errors: as post, but for addresses.
  virtual Status prepare(const Call& call) = 0;
  /// Posts `call`; all ranks post the same calls in the same order. Returns at once.
  /// Errors: invalid_argument (a value out of range, shared buffers that are not from alloc_shared), resource (see
  /// bind).
  [[nodiscard]] virtual Result<Work> post(const Call& call) = 0;
  /// Whether calls can be captured: where ranks are thread blocks of one process.
  [[nodiscard]] virtual bool has_graphs() const { return false; }
  /// Between the two, calls that the rank posts are recorded and not carried out; to test their handles is an error.
  /// All ranks do so around the same collectives, one or more. Errors: unavailable where has_graphs is not;
  /// invalid_argument (one within another, nothing posted); mismatch where the calls differ.
  virtual Status begin_capture();
  [[nodiscard]] virtual Result<std::unique_ptr<CapturedCalls>> end_capture();
  /// Posts all of them again, one after the other, as one call. All ranks post the same. Errors: those of
  /// begin_capture.
  [[nodiscard]] virtual Result<Work> post_captured(CapturedCalls& calls);
  /// post and wait with the communicator's timeout, through the same path.
  virtual Status run(const Call& call) = 0;
  /// Posts a v form whose operands are lists of P blocks; an empty list stands for `call.input` or `call.output`.
  /// gather_v and all_gather_v have `output`, scatter_v and reduce_scatter_v have `input`, all_to_all_v has both. The
  /// placement is found by the addresses. All that was given is looked at only until post_list returns. Errors: those
  /// of post; invalid_argument (no v form, a list too many or too few, not one block for each rank).
  [[nodiscard]] Result<Work> post_list(const Call& call, std::span<const ConstPart> input,
                                       std::span<const Part> output);

  /// Ends the communicator on all its ranks: what is pending, and what is called later and has to wait, fails with
  /// `aborted`. The message names `rank`, whoever calls, and has `reason` (some 700 bytes of it); it is the same on all
  /// ranks. Where the communicator is over already, its first failure stays. Errors: invalid_argument (a rank out of
  /// range).
  virtual Status abort(int rank, std::string_view reason) = 0;

  /// Post a send of buffer[count] to rank `peer`, a receive of buffer[count] from it. The sends from one rank to
  /// another with one tag are matched with the receives there in the order in which each were posted. A message that a
  /// receive with another tag overtakes is kept in memory here until its own receive comes. Count and dtype are the
  /// same at both ends. A rank may send to itself. Complete is a send when its buffer may be written, maybe before the
  /// receive is posted. Several posted before any is waited for are what others call a group of sends and receives.
  /// Errors: invalid_argument (a value out of range; tags are not negative); unavailable (a tag other than 0 where
  /// ranks are thread blocks).
  [[nodiscard]] virtual Result<Work> post_send(const void* buffer, Count count, Dtype dtype, int peer, int tag = 0) = 0;
  [[nodiscard]] virtual Result<Work> post_recv(void* buffer, Count count, Dtype dtype, int peer, int tag = 0) = 0;
  /// The message from `peer`, with that tag or else with any, that the next receive would take; nothing where none has
  /// come that no posted receive takes. Makes progress. It stays until it is received. Errors: as test; unavailable
  /// where ranks are thread blocks.
  [[nodiscard]] virtual Result<std::optional<Message>> probe(int peer, std::optional<int> tag = std::nullopt);
  /// Takes back a posted receive of which nothing has come. True: it is complete, and its buffer is free. False: it
  /// goes on, is complete already, or is no receive.
  bool cancel(const Work& receive);
  /// Post and wait. Two ranks that both send first, then receive, wait for each other when the message is longer than
  /// the channel: post both.
  Status send(const void* buffer, Count count, Dtype dtype, int peer, int tag = 0);
  Status recv(void* buffer, Count count, Dtype dtype, int peer, int tag = 0);

  /// A communicator for each colour, of the ranks that pass it, ordered by key, then by rank; null for a colour below
  /// 0. Collective over this communicator. Errors: resource with the numbers, on all ranks alike, where one has no
  /// memory for its group; those of wait.
  [[nodiscard]] Result<std::unique_ptr<Communicator>> split(int colour, int key);
  /// A communicator of `ranks` of this one, in that order; null on a rank that is not among them. Called by all ranks
  /// of this communicator with the same list. Errors: as split; invalid_argument (a number out of range, or twice),
  /// mismatch where the lists differ.
  [[nodiscard]] Result<std::unique_ptr<Communicator>> new_group(std::span<const int> ranks);
  /// The same without waiting. Until the formation is complete, this communicator takes no other collective.
  [[nodiscard]] virtual Result<std::unique_ptr<GroupFormation>> post_split(int colour, int key) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<GroupFormation>> post_new_group(std::span<const int> ranks) = 0;

  /// `bytes` that every rank of the node can address, 64-byte aligned. Errors: resource with the numbers.
  [[nodiscard]] virtual Result<void*> alloc_shared(std::size_t bytes) = 0;
  virtual void free_shared(void* pointer) = 0;

  /// The algorithm that `auto` chooses for `call`: a pure function of what is the same on all ranks.
  [[nodiscard]] virtual const Algorithm& choose(const Call& call) const = 0;
  /// Whether a schedule of Stores::single_copy leaves the call's private buffers where they lie: on all ranks alike.
  [[nodiscard]] virtual bool may_copy_once(const Call& /*call*/) const { return false; }

  /// Where every rank stands, as far as it has told: a line for each, each after a line break, those furthest behind
  /// first. For reports of a job that does not go on.
  [[nodiscard]] virtual std::string report() const = 0;

  // Shapes are in elements; P = ranks(), r = rank(). In place is seen by the addresses. What is "not looked at" may be
  // null. The ranks whose output is not looked at keep what they have there.

  /// The root's input[count] to every output[count]. The input of the others is not looked at; pass input == output on
  /// every rank for the one-buffer form.
  Status broadcast(const void* input, void* output, Count count, Dtype dtype, int root,
                   Buffers buffers = Buffers::private_);
  /// All input[count], reduced, to the root's output[count]; the output of the others is not looked at. In place: input
  /// == output at the root.
  Status reduce(const void* input, void* output, Count count, Dtype dtype, Reduction reduction, int root,
                Buffers buffers = Buffers::private_);
  /// All input[count], reduced, to every output[count]. In place: input == output.
  Status all_reduce(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                    Buffers buffers = Buffers::private_);
  /// Rank q's input[count] to block q of the root's output[P * count]; the output of the others is not looked at. In
  /// place: input == output + root * count at the root.
  Status gather(const void* input, void* output, Count count, Dtype dtype, int root,
                Buffers buffers = Buffers::private_);
  /// Rank q's input[count] to block q of every output[P * count]. In place: input == output + r * count.
  Status all_gather(const void* input, void* output, Count count, Dtype dtype, Buffers buffers = Buffers::private_);
  /// Block q of the root's input[P * count] to rank q's output[count]; the input of the others is not looked at. In
  /// place: output == input + root * count at the root.
  Status scatter(const void* input, void* output, Count count, Dtype dtype, int root,
                 Buffers buffers = Buffers::private_);
  /// Block q of all input[P * count], reduced, to rank q's output[count]. In place: output == input + r * count.
  Status reduce_scatter(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                        Buffers buffers = Buffers::private_);
  /// Block q of input[P * count] to block r of rank q's output[P * count]. In place: input == output.
  Status all_to_all(const void* input, void* output, Count count, Dtype dtype, Buffers buffers = Buffers::private_);
  /// The input[count] of the ranks up to r, reduced, to output[count]. In place: input == output. No op avg.
  Status scan(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
              Buffers buffers = Buffers::private_);
  /// The input[count] of the ranks before r, reduced, to output[count]; the output of rank 0 is not looked at. In
  /// place: input == output on every rank. No op avg.
  Status exscan(const void* input, void* output, Count count, Dtype dtype, Reduction reduction,
                Buffers buffers = Buffers::private_);
  Status barrier();

  // v forms: block b of a divided buffer is counts[b] elements from displacements[b] on; without displacements each
  // block follows the one before it. Blocks may be empty and lie in any order; the gaps between them are neither read
  // nor written. The blocks of an output do not overlap. All ranks pass the same counts; displacements are looked at
  // only where the divided buffer is, and are each rank's own. A buffer whose blocks are all empty may be null.
  // Errors: invalid_argument (a negative count or displacement, too many bytes, blocks that overlap: naming them).

  /// Rank q's input[counts[q]] to block q of the root's output. In place: the root's input is its block of the output.
  Status gather_v(const void* input, void* output, const Division& division, Dtype dtype, int root,
                  Buffers buffers = Buffers::private_);
  /// Rank q's input[counts[q]] to block q of every output. In place: input is block r of output.
  Status all_gather_v(const void* input, void* output, const Division& division, Dtype dtype,
                      Buffers buffers = Buffers::private_);
  /// Block q of the root's input to rank q's output[counts[q]]. In place: the root's output is its block of the input.
  Status scatter_v(const void* input, void* output, const Division& division, Dtype dtype, int root,
                   Buffers buffers = Buffers::private_);
  /// Block q of all inputs, reduced, to rank q's output[counts[q]]. In place: output is block r of input.
  Status reduce_scatter_v(const void* input, void* output, const Division& division, Dtype dtype, Reduction reduction,
                          Buffers buffers = Buffers::private_);
  /// Block q of input, divided as `send` says, to block r of rank q's output, divided as rank q's `receive` says. Both
  /// counts are the same; else the receiver ends with `mismatch` naming the peer and both lengths. In place: input ==
  /// output, and send and receive are the same.
  Status all_to_all_v(const void* input, const Division& send, void* output, const Division& receive, Dtype dtype,
                      Buffers buffers = Buffers::private_);

  // The same with lists of P blocks in place of divided buffers. All ranks pass the same counts; addresses are looked
  // at only where the divided buffer is, elsewhere they may be null. In place: one buffer's address is that of the
  // block.

  /// Rank q's input[output[q].count] to the root's output[q].
  Status gather(const void* input, std::span<const Part> output, Dtype dtype, int root,
                Buffers buffers = Buffers::private_);
  /// Rank q's input[output[q].count] to every output[q].
  Status all_gather(const void* input, std::span<const Part> output, Dtype dtype, Buffers buffers = Buffers::private_);
  /// The root's input[q] to rank q's output[input[q].count].
  Status scatter(std::span<const ConstPart> input, void* output, Dtype dtype, int root,
                 Buffers buffers = Buffers::private_);
  /// All input[q], reduced, to rank q's output[input[q].count].
  Status reduce_scatter(std::span<const ConstPart> input, void* output, Dtype dtype, Reduction reduction,
                        Buffers buffers = Buffers::private_);
  /// input[q] to rank q's output[r]; counts as for all_to_all_v. In place: both lists are the same.
  Status all_to_all(std::span<const ConstPart> input, std::span<const Part> output, Dtype dtype,
                    Buffers buffers = Buffers::private_);

 protected:
  friend class Work;
  using Ticket = Work::Ticket;
  [[nodiscard]] Work handle(const Ticket& ticket) { return Work(this, ticket); }
  virtual Result<bool> test(const Ticket& ticket) = 0;
  virtual Status wait(const Ticket& ticket, std::chrono::nanoseconds timeout) = 0;
  virtual Result<bool> wait_for(const Ticket& ticket, std::chrono::nanoseconds timeout) = 0;
  virtual bool take_back(const Ticket& /*receive*/) { return false; }
  [[nodiscard]] virtual std::string position(const Ticket& ticket) const = 0;
  [[nodiscard]] virtual std::chrono::nanoseconds timeout() const = 0;

 private:
  /// run, with the placement that the addresses show.
  virtual Status run_where_it_lies(const Call& call) = 0;
  Status run_v(const Call& call, const BlockTable& blocks);
  Status run_divided(const Call& call, const Division& division);
  Status run_list(const Call& call, std::span<const ConstPart> input, std::span<const Part> output);
  /// `call` on these lists, whose blocks come to lie in `blocks`. Errors: those of post_list, but for post's.
  [[nodiscard]] Result<Call> listed(Call call, std::span<const ConstPart> input, std::span<const Part> output,
                                    BlockTable& blocks) const;
  /// With its blocks, and the placement that the addresses show.
  [[nodiscard]] Call placed_v(Call call, const BlockTable& blocks) const;
};

/// A group on its way: split and new_group as an operation. Valid as long as the communicator that it is formed of.
class GroupFormation {
 public:
  virtual ~GroupFormation() = default;
  /// Makes progress; true when complete. Errors: those of split and new_group.
  [[nodiscard]] virtual Result<bool> test() = 0;
  /// Errors: also timeout.
  virtual Status wait(std::chrono::nanoseconds timeout) = 0;
  /// The group, once complete; null where this rank is in none.
  [[nodiscard]] virtual std::unique_ptr<Communicator> take() = 0;
};

}  // namespace tutti
