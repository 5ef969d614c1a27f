// SPDX-License-Identifier: Apache-2.0
// `auto`: which algorithm runs a call, and how. A table that the user names comes first (selection_table.h), then the
// one that is built in, then the rows of selection.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "impl/algorithms/algorithm.h"
#include "impl/collective/collective.h"
#include "impl/schedule/bind.h"
#include "impl/schedule/tuning.h"
#include "impl/types/status.h"

namespace tutti {

class SelectionTable;

/// What ranks are to those who have measured.
enum class RanksPlace : std::uint8_t { one_host, several_hosts, device };

/// What `auto` looks at: the same on all ranks.
struct ChoiceOf {
  Problem problem;
  Buffers buffers = Buffers::private_;
  int cores = 1;           ///< that the ranks may use together
  std::int64_t bytes = 0;  ///< of one rank's larger buffer; of a v form nothing counts: a rank knows its own only
  RanksPlace on = RanksPlace::one_host;
  const SelectionTable* table = nullptr;  ///< the user's; null: none
  bool has_single_copies = false;         ///< else rows of Stores::single_copy are taken with Stores::tried
};
struct Chosen {
  const Algorithm* algorithm = nullptr;
  Tuning tuning = {};
  bool is_measured = false;       ///< or the only algorithm
  std::string simulated_on = {};  ///< the machine by whose file `tutti simulate` has chosen it; empty: it has not
};
[[nodiscard]] Chosen choose(const ChoiceOf& of);

/// An algorithm, and how it is run.
struct TunedAlgorithm {
  const Algorithm* algorithm = nullptr;
  Tuning tuning = {};
};
/// "two_shot+64K+streamed".
[[nodiscard]] std::string to_text(const TunedAlgorithm& tuned);
/// Errors: those of find_algorithm and tuning_from.
[[nodiscard]] Result<TunedAlgorithm> find_tuned(Collective collective, std::string_view text);
[[nodiscard]] Schedule schedule_of(const TunedAlgorithm& tuned, const Problem& problem);

/// The choice without a user's table, for ranks of one host; `cores` is the number that the ranks may use together.
[[nodiscard]] const Algorithm& choose_algorithm(const Problem& problem, Buffers buffers, int cores, std::int64_t bytes);
/// The same where ranks are on several hosts: none that touches a peer's memory.
[[nodiscard]] const Algorithm& choose_across_hosts(const Problem& problem, std::int64_t bytes);
/// The same where ranks are teams of devices: whatever cores the host has, all teams are at work at once.
[[nodiscard]] const Algorithm& choose_on_devices(const Problem& problem, Buffers buffers, std::int64_t bytes);
/// Whether the choice there was measured on such ranks, rather than taken from the cost formula. It is also true where
/// there is one algorithm only. Arguments as for choose_algorithm.
[[nodiscard]] bool is_choice_measured(const Problem& problem, Buffers buffers, int cores, std::int64_t bytes,
                                      RanksPlace on);

}  // namespace tutti
