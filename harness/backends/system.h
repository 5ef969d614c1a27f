// SPDX-License-Identifier: Apache-2.0
// A backend as the harness sees it: a system under test that can be asked what it supports, made ready for a case, and
// run. Own collectives and references stand behind the same interface. Only the own ones are truly asynchronous; a
// reference runs its blocking call in `post`, as its users do.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "harness/cases/case.h"
#include "harness/verify/buffers.h"
#include "harness/verify/stream.h"
#include "impl/types/status.h"

namespace tutti::harness::backends {

/// One rank's buffers; null where the collective reads or writes nothing there. In place: input == output.
struct RankBuffers {
  const void* input = nullptr;
  void* output = nullptr;
  MemoryKind memory = MemoryKind::host;  ///< where both lie
  void* stream = nullptr;                ///< that the rank's calls are posted on; null: they have none
  int local = 0;                         ///< the rank's place among the host's
  /// All of the memory that each lies in; empty where it was not asked for.
  std::span<const std::byte> around_input = {}, around_output = {};
};

/// Memory for the buffers of rank `index` of this host, by the case: its backend decides where they lie.
using MemorySource = std::function<Allocator(const Case& one, std::size_t index)>;

/// A case made ready on this host: its ranks are addressed by their index in the host.
class Prepared {
 public:
  virtual ~Prepared() = default;
  /// Around the posts of one operation for several ranks of the host, which a library may start together.
  virtual Status begin_posts() { return {}; }
  virtual Status end_posts() { return {}; }
  virtual Status post(std::size_t index) = 0;
  /// Whether the ranks of the host have to post each operation together: one thread that posts for one of them must not
  /// wait for the others meanwhile.
  [[nodiscard]] virtual bool is_posted_together() const { return false; }
  /// Makes progress; true when the operation posted last is complete.
  virtual Result<bool> test(std::size_t index) = 0;
  /// Whether operations may be posted before the last one is complete, and are carried out one after the other, as on a
  /// stream. `test` then speaks of the last one.
  [[nodiscard]] virtual bool is_in_order() const { return false; }
  /// Whether the backend itself records calls, where others leave that to the stream that they are posted on. Between
  /// the two, what is posted for a rank becomes a graph, and is not carried out; `test` then speaks of the graph's last
  /// launch. All ranks do so around the same calls, and launch their graphs like calls. Errors: those of the backend.
  [[nodiscard]] virtual bool has_graphs() const { return false; }
  virtual Status begin_capture(std::size_t index);
  [[nodiscard]] virtual Result<std::unique_ptr<verify::Graph>> end_capture(std::size_t index);
  /// After `test` was true of all ranks of the host, outside the timed part: whatever else must be over before the
  /// buffers are touched again. All hosts call it.
  virtual Status settle() { return {}; }
  /// What is wrong with what the last call of a rank has written beside the case's buffers; empty: nothing. Who writes
  /// there spoils it for the next call.
  [[nodiscard]] virtual std::string flaw(std::size_t /*index*/) { return {}; }
  /// Where a pending operation stands, for reports.
  [[nodiscard]] virtual std::string position(std::size_t /*index*/) const { return "in the library's call"; }
  /// Where every rank stands, for reports: lines, each after a line break; empty where the backend cannot tell.
  [[nodiscard]] virtual std::string report() const { return ""; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// A JSON object for the record: library, version, transport, single-copy mechanism.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Errors: unavailable with the reason; the case is then `skipped`.
  [[nodiscard]] virtual Status supports(const Case& one) const = 0;
  /// The algorithm that runs, never `auto`; `none` where the backend does not tell.
  [[nodiscard]] virtual std::string algorithm_of(const Case& one) const = 0;
  /// Whatever can be refused is refused here and not by `post`, after which other ranks may wait for this one.
  /// Errors: unavailable or resource (the case is then `skipped`), refuted (`wrong`), others (`error`).
  [[nodiscard]] virtual Result<std::unique_ptr<Prepared>> prepare(const Case& one,
                                                                  std::span<const RankBuffers> buffers) = 0;
  /// The same, where `post` returns at once, also of a backend that is otherwise called and waited for. Errors: as
  /// prepare.
  [[nodiscard]] virtual Result<std::unique_ptr<Prepared>> prepare_asynchronous(const Case& one,
                                                                               std::span<const RankBuffers> buffers) {
    return prepare(one, buffers);
  }
};

inline Status Prepared::begin_capture(std::size_t /*index*/) {
  return error(Code::unavailable, "the backend has no graphs of its own");
}
inline Result<std::unique_ptr<verify::Graph>> Prepared::end_capture(std::size_t index) { return begin_capture(index); }

}  // namespace tutti::harness::backends
