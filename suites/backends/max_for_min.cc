// SPDX-License-Identifier: Apache-2.0
// A backend that errs: Open MPI's, except that it takes the largest where the smallest is asked for. The tests of the
// command line run it to see that a soak finds it.
#include <string_view>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

int prepare_max(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  TuttiBackendCall other = *call;
  if (std::string_view(call->op) == "min") other.op = "max";
  return honest->prepare(&other, handle, message);
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, "max_for_min");
  backend.prepare = prepare_max;
  return &backend;
}
