// SPDX-License-Identifier: Apache-2.0
// Where processes are, by the stacks of their threads, as eu-stack (elfutils) reads them.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "harness/floors.h"

namespace tutti::harness::process {

struct RankStack {
  int rank = 0;
  std::string text;  ///< of all threads, or why there is none
};
/// A stack that overflows has as many frames.
inline constexpr std::size_t kMostStackBytes = std::size_t{64} << 10;
/// With all processes of a host that hang.
inline constexpr std::chrono::seconds kStacksPatience{10};

/// What eu-stack printed, without what differs from process to process: numbers of processes and threads, addresses.
[[nodiscard]] std::string without_addresses(std::string_view printed);

/// One paragraph for each stack: the ranks that have it, and it. The one of the most ranks comes first; of as many,
/// that of the lowest rank.
[[nodiscard]] std::string grouped(std::span<const RankStack> stacks);

/// The stacks of the processes of the ranks, [rank]; 0 is a rank whose process is not known. All are read within
/// `most`; who is not in time has that as its text. Empty if there is no eu-stack.
[[nodiscard]] std::vector<RankStack> stacks_of(std::span<const pid_t> pids, std::chrono::milliseconds most);

}  // namespace tutti::harness::process
