// SPDX-License-Identifier: Apache-2.0
// Open MPI's backend, except that its calls never return. The tests of the command line run it to see which case is
// said to hang.
#include <unistd.h>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

int sleep_for_ever(void* /*handle*/, TuttiBackendMessage* /*message*/) {
  for (;;) pause();
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.run = sleep_for_ever;
  return &backend;
}
