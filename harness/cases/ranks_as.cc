// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/ranks_as.h"

#include <algorithm>
#include <numeric>

namespace tutti::harness::cases {

std::vector<int> RankKind::ranks_of(int runner, int ranks) const {
  const int most = ranks_of_runner == 0 ? ranks : ranks_of_runner;
  std::vector<int> own(static_cast<std::size_t>(std::min(most, ranks - runner * most)));
  std::iota(own.begin(), own.end(), runner * most);
  return own;
}

}  // namespace tutti::harness::cases
