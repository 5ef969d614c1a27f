// SPDX-License-Identifier: Apache-2.0
// A backend that crashes in its own code: Open MPI's, but on rank 1. It crashes at its start (TUTTI_LAZY_WORKS is 0),
// or in a call once TUTTI_LAZY_WORKS calls have worked. The tests of the command line run it to see that the message
// names it.
#include <csignal>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");
bool is_second_rank = false;

int open_or_crash(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  is_second_rank = world->rank == 1;
  if (TUTTI_LAZY_WORKS == 0 && is_second_rank) std::raise(SIGSEGV);
  return honest->open(world, join, message);
}

int run_or_crash(void* handle, TuttiBackendMessage* message) {
  static int calls = 0;
  if (is_second_rank && ++calls > TUTTI_LAZY_WORKS) std::raise(SIGSEGV);
  return honest->run(handle, message);
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.open = open_or_crash;
  backend.run = run_or_crash;
  return &backend;
}
