// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/refusal.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace tutti::harness::measure {

Refusal Refusal::of(const Status& status) {
  Refusal refusal{.code = status.code()};
  std::strncpy(refusal.reason.data(), std::string(status.message()).c_str(), refusal.reason.size() - 1);
  return refusal;
}

Result<Refusal> first_refusal(Host& host, const Refusal& mine) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Refusal> all, host.exchange(mine));
  const auto first = std::find_if(all.begin(), all.end(), [](const Refusal& one) { return one.code != Code::ok; });
  return first == all.end() ? Refusal() : *first;
}

}  // namespace tutti::harness::measure
