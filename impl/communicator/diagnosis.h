// SPDX-License-Identifier: Apache-2.0
// What the journals of a domain's ranks say when something has gone wrong. They show which call two ranks do not agree
// on and in what, where each rank stands, and which ranks have not called. Nothing is written, and any process may ask
// that maps the domain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/transports/journal.h"

namespace tutti {

/// "all_reduce ring of 100 float, sum"; where the call has several segments, which one operation `number` is.
[[nodiscard]] std::string call_text(const CallNote& note, std::uint64_t number);
/// "operation 17 (barrier dissemination), step 2 of 3: waits for phase 1 of rank 2", "receive of 1 float (4 bytes) from
/// rank 1 has no send". `note` is that of the pending operation, where it is known.
[[nodiscard]] std::string standing_text(const Domain& domain, const Standing& standing, const CallNote* note);
/// The first operation that two ranks have both started with different calls, as a sentence: which ranks, which
/// operation, and every field that differs. Nothing where they agree on all that their journals still hold.
[[nodiscard]] std::optional<std::string> disagreement(const Domain& domain, int rank, int other);

/// Where a rank stands: `text` follows its name ("has completed operation 16 (barrier dissemination)").
struct Progress {
  int rank = 0;
  std::uint64_t started = 0;  ///< operations
  bool waits = false;         ///< and has said so
  std::string text;
  Standing standing = {};  ///< where it waits
};
/// By rank.
[[nodiscard]] std::vector<Progress> progress_of(const Domain& domain);
/// An operation that a rank has started.
struct StartedCall {
  std::uint64_t number = 0;
  CallNote call = {};
  bool is_complete = false;  ///< as far as is known
};
/// No memory has more elements. A journal that has is not believed.
inline constexpr Count kMostCallCount = Count{1} << 48U;
/// By rank, its last operations that the journals still hold, `most` at most, the oldest first.
[[nodiscard]] std::vector<std::vector<StartedCall>> last_calls(const Domain& domain, std::uint64_t most);
/// A line for each rank, each after a line break: those furthest behind first, and no more lines than can be read.
[[nodiscard]] std::string report_of(const Domain& domain);

}  // namespace tutti
