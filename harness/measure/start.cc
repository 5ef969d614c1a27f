// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/start.h"

namespace tutti::harness::measure {

Status start(Runner& own, const Start& how) {
  Runner& runner = starting(own, how);
  if (how.how == Synchronisation::roundtime) return runner.start_together().status();
  if (how.how == Synchronisation::library && how.barrier != nullptr) {
    RankTimes times;
    return runner.start_after([&] { return how.barrier->run(times); });
  }
  return runner.start_after([&] { return runner.pass_barrier(); });
}

}  // namespace tutti::harness::measure
