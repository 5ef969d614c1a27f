// SPDX-License-Identifier: Apache-2.0
// The public API: a communicator is one rank's seat in a group of ranks; a call on it is an asynchronous operation, and
// a blocking call is that operation waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "impl/algorithms/algorithm.h"
#include "impl/collective/collective.h"
#include "impl/schedule/bind.h"
#include "impl/transports/domain.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "impl/types/status.h"

namespace tutti {

using Clock = std::chrono::steady_clock;

/// How a wait passes its time: `spin` where every rank has a core, `yield` at once where ranks outnumber cores.
enum class Waiting : std::uint8_t { spin, yield };

struct CommunicatorOptions {
  Waiting waiting = Waiting::spin;
  int cores = 1;  ///< that the ranks may use together; `auto` chooses by it, so it is the same on all ranks
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of every blocking call
  std::int64_t cache_bytes = 0;  ///< last-level cache; beyond it, stores to user buffers stream; 0: never
  Count segment = 0;             ///< elements per block and segment; 0: the largest that fits
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
  Count count = 0;  ///< elements per block
  const void* input = nullptr;
  void* output = nullptr;
  const void* factor = nullptr;  ///< premul_sum: one element, this rank's own, looked at while the call is posted
  bool is_in_place = false;      ///< reduce, gather, scatter: of the root; the others need not know
  Buffers buffers = Buffers::private_;
  const Schedule* schedule = nullptr;  ///< must outlive the communicator; nullptr: `auto` chooses by table
};

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

/// A posted operation. Copyable; valid as long as its communicator.
class Work {
 public:
  /// Makes progress once; true when complete. Errors: as wait, but for timeout.
  [[nodiscard]] Result<bool> test();
  /// Errors: timeout naming the ranks waited for, aborted naming the rank that failed, mismatch naming the peer.
  Status wait(std::chrono::nanoseconds timeout);
  /// Where the operation stands, for reports: "step 3 of 7: waits for phase 1 of rank 2".
  [[nodiscard]] std::string position() const;

 private:
  friend class Communicator;
  Work(Communicator* communicator, std::uint64_t ticket) : communicator_(communicator), ticket_(ticket) {}
  Communicator* communicator_;
  std::uint64_t ticket_;
};

class Communicator {
 public:
  /// Rank `rank` of the world of `domain` (all its ranks). The domain must outlive the communicator.
  [[nodiscard]] static Result<std::unique_ptr<Communicator>> create(Domain& domain, int rank,
                                                                    CommunicatorOptions options);
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  /// Binds `call` ahead of time, whatever its addresses; post then finds its plan. Each rank by itself: where one rank
  /// is refused and another is not, the caller must see to it that none posts. Errors: as post, but for addresses.
  virtual Status prepare(const Call& call) = 0;
  /// Posts `call`; all ranks post the same calls in the same order. Returns at once.
  /// Errors: invalid_argument (a value out of range, shared buffers that are not from alloc_shared), resource (see
  /// bind).
  [[nodiscard]] virtual Result<Work> post(const Call& call) = 0;
  /// post and wait with the communicator's timeout, through the same path.
  virtual Status run(const Call& call) = 0;

  /// `bytes` that every rank of the node can address, 64-byte aligned. Errors: resource with the numbers.
  [[nodiscard]] virtual Result<void*> alloc_shared(std::size_t bytes) = 0;
  virtual void free_shared(void* pointer) = 0;

  /// The algorithm that `auto` chooses for `call`: a pure function of what is the same on all ranks.
  [[nodiscard]] virtual const Algorithm& choose(const Call& call) const = 0;

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
  Status barrier();

 protected:
  friend class Work;
  [[nodiscard]] Work handle(std::uint64_t ticket) { return Work(this, ticket); }
  virtual Result<bool> test(std::uint64_t ticket) = 0;
  virtual Status wait(std::uint64_t ticket, std::chrono::nanoseconds timeout) = 0;
  [[nodiscard]] virtual std::string position(std::uint64_t ticket) const = 0;

 private:
  /// run, with the placement that the addresses show.
  Status run_where_it_lies(Call call);
};

/// The row of the selection table that fits; `cores` is the number that the ranks may use together.
[[nodiscard]] const Algorithm& choose_algorithm(const Problem& problem, Buffers buffers, int cores, std::int64_t bytes);

}  // namespace tutti
