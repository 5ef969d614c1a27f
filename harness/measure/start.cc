// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/start.h"

namespace tutti::harness::measure {

Status start(Host& host, const Start& how) {
  if (how.how == Synchronisation::roundtime) return host.start_together().status();
  if (how.how == Synchronisation::library && how.barrier != nullptr) {
    RankTimes times;
    return host.start_after([&] { return how.barrier->run(times); });
  }
  return host.start_after([&] { return host.pass_barrier(); });
}

}  // namespace tutti::harness::measure
