// SPDX-License-Identifier: Apache-2.0
// A stand-in for the shim of an MPI whose ranks do not find each other. It loads and says what it is, and every rank of
// it is a world of one. The tests of the command line have it beside Open MPI.
#include <cstdio>

#include "harness/backends/backend.h"

namespace {

int foreign_open(const TuttiBackendGroup* world, const TuttiBackendJoin* /*join*/, TuttiBackendMessage* message) {
  std::snprintf(message->text, message->size, "Foreign MPI sees rank 0 of 1, the launcher started rank %d of %d",
                world->rank, world->ranks);
  return 1;
}

int foreign_describe(TuttiBackendMessage* text) {
  std::snprintf(text->text, text->size,
                R"({"library": "Foreign MPI", "version": "7.0", "transport": "", "single_copy": ""})");
  return 0;
}

#ifdef TUTTI_FOREIGN_MPIRUN
int foreign_start_command(TuttiBackendMessage* text) {
  std::snprintf(text->text, text->size, R"({"command": [")" TUTTI_FOREIGN_MPIRUN R"("]})");
  return 0;
}
#endif

/// In a process that never opened it, nothing but describe may be called: as a library would, it crashes.
int foreign_supports(const TuttiBackendCall* /*call*/, TuttiBackendMessage* /*reason*/) { __builtin_trap(); }

int foreign_close(TuttiBackendMessage* /*message*/) { return 0; }

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend{};
  backend.abi = TUTTI_BACKEND_ABI;
  backend.name = TUTTI_FOREIGN_NAME;
#ifdef TUTTI_FOREIGN_MPIRUN
  backend.starter = TUTTI_STARTER_MPIRUN;
  backend.start_command = foreign_start_command;
#endif
  backend.open = foreign_open;
  backend.describe = foreign_describe;
  backend.supports = foreign_supports;
  backend.close = foreign_close;
  return &backend;
}

#ifdef TUTTI_FOREIGN_CRASHES
/// As where two MPIs are in one process: this one crashes as soon as it is loaded.
__attribute__((constructor)) static void crash() { __builtin_trap(); }
#endif
