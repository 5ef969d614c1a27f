// SPDX-License-Identifier: Apache-2.0
// The barriers of one epoch of a soak, judged by the barrier's rule when all are over. Each rank says when it entered
// and when it left. No rank may have left before every rank of the group had entered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/measure/runner.h"
#include "harness/soak/mix.h"
#include "harness/verify/check.h"

namespace tutti::harness::soak {

class EpochBarriers {
 public:
  EpochBarriers(const Mix& mix, int epoch);

  /// A rank of the world was in the barrier that is operation `index`. Of the split, each colour has its own.
  void add(std::int64_t index, int world_rank, const BarrierTimes& times);

  struct Verdict {
    std::int64_t judged = 0;
    std::int64_t wrong = 0;
    std::string first_wrong;
  };
  /// By what all runners have added. All runners call it once. Errors: those of exchange.
  [[nodiscard]] Result<Verdict> judge(Runner& runner);

 private:
  static constexpr std::size_t kColours = 2;
  std::vector<std::int64_t> indices_;  // of the operations that are barriers, rising
  std::vector<bool> is_split_;         // [barrier]
  std::vector<BarrierTimes> times_;    // [barrier][colour], of this runner's ranks
};

}  // namespace tutti::harness::soak
