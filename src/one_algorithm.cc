// SPDX-License-Identifier: Apache-2.0
#include "src/one_algorithm.h"

#include "impl/communicator/communicator.h"

namespace tutti::program {

const Algorithm& usual_algorithm(const Problem& problem) {
  constexpr std::int64_t kFewBytes = 64;
  return choose_algorithm(problem, Buffers::shared, problem.ranks, kFewBytes);
}

}  // namespace tutti::program
