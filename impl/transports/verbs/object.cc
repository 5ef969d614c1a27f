// SPDX-License-Identifier: Apache-2.0
// What the loader asks the shared object for.
#include "impl/transports/verbs/domain.h"

extern "C" __attribute__((visibility("default"))) const tutti::Transport* tutti_transport() {
  return &tutti::verbs::transport();
}
