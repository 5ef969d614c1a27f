// SPDX-License-Identifier: Apache-2.0
// How the ranks of a world meet. Each rank says over the exchange who it is and on which host. Rank 0 reads all of
// them and says how they go together. The first rank of each host makes the memory of its ranks and says where it is;
// the others open it through /proc. It has no name in a file system, so nothing is left behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "impl/embed/exchange.h"
#include "impl/embed/peers.h"
#include "impl/embed/world.h"

namespace tutti::embed {

/// What a rank says of itself.
struct Seating {
  std::string build;  ///< of tutti: ranks of two builds share no memory
  std::string host;   ///< equal where ranks can share memory
  ProcessId process;
  std::vector<bool> cores = {};  ///< that it may use, by number
  std::string arena = {};        ///< Arena::offer; empty: it has none
  std::string table = {};        ///< by which `auto` chooses: SelectionTable::id
};

/// How the ranks go together, as rank 0 says.
struct Plan {
  std::vector<int> host_of;          ///< [rank], from 0, in blocks
  std::vector<ProcessId> processes;  ///< [rank]
  std::vector<int> cores;            ///< [host]: that its ranks may use together
  std::string address;               ///< where rank 0 awaits the ranks of other hosts; empty: there are none
  std::string key;                   ///< of the world, drawn by rank 0, in digits of base 16
  std::vector<std::string> arenas;   ///< [rank]: Arena::offer; empty unless all have one and are on one host

  [[nodiscard]] int hosts() const { return host_of.empty() ? 0 : host_of.back() + 1; }
};

[[nodiscard]] std::string to_text(const Seating& seating);
[[nodiscard]] Result<Seating> seating_from(const std::string& text);
[[nodiscard]] std::string to_text(const Plan& plan);
[[nodiscard]] Result<Plan> plan_from(const std::string& text, int ranks);
[[nodiscard]] Seating seating_here();
/// Of all ranks, without address and key. Errors: mismatch (two builds, two selection tables), unavailable (ranks are
/// not numbered host by host), naming the ranks.
[[nodiscard]] Result<Plan> plan_of(const std::vector<Seating>& all);

}  // namespace tutti::embed
