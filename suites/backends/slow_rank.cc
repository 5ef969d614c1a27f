// SPDX-License-Identifier: Apache-2.0
// Open MPI's backend, except that the calls of rank 1 return late. The tests of the command line run it to see that the
// rank is named.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "suites/backends/honest.h"

namespace {

constexpr std::chrono::milliseconds kLate{30};  // more than ranks that take turns on cores may be late

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

int run_late(void* handle, TuttiBackendMessage* message) {
  static const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const int code = honest->run(handle, message);
  if (rank != nullptr && std::strcmp(rank, "1") == 0) std::this_thread::sleep_for(kLate);
  return code;
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.run = run_late;
  return &backend;
}
