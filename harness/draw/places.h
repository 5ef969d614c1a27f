// SPDX-License-Identifier: Apache-2.0
// The hosts of a schedule's ranks, or the caches of one host: what pictures put together.
#pragma once

#include <string_view>

#include "harness/floors.h"
#include "impl/collective/collective.h"

namespace tutti::harness::draw {

struct Places {
  std::string_view name = "host";  ///< of one of them
  int size = 0;                    ///< consecutive ranks of each; the last may have fewer; 0: there is one place
  int count = 1;

  explicit Places(const Problem& problem) {
    const bool has_caches = problem.ranks_per_host == 0 && problem.ranks_per_cache > 0;
    if (has_caches) name = "cache";
    size = has_caches ? problem.ranks_per_cache : problem.ranks_per_host;
    if (size > 0) count = (problem.ranks + size - 1) / size;
  }
  [[nodiscard]] int of(int rank) const { return size > 0 ? rank / size : 0; }
};

}  // namespace tutti::harness::draw
