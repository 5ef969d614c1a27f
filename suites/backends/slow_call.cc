// SPDX-License-Identifier: Apache-2.0
// Open MPI's backend, except that each call of one collective, TUTTI_SLOW_CALL, is made TUTTI_SLOW_TIMES times: the
// result is right, and takes that much longer. Once is as Open MPI is. `tutti guidelines` has to find it.
#include <cstdlib>
#include <cstring>
#include <set>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

std::set<void*> slow_calls;

int prepare_and_note(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  const int code = honest->prepare(call, handle, message);
  const char* const slow = std::getenv("TUTTI_SLOW_CALL");
  if (code == 0 && slow != nullptr && std::strcmp(call->collective, slow) == 0) slow_calls.insert(*handle);
  return code;
}

int run_often(void* handle, TuttiBackendMessage* message) {
  static const char* const text = std::getenv("TUTTI_SLOW_TIMES");
  static const int asked = text == nullptr ? 1 : std::atoi(text);
  const int times = slow_calls.contains(handle) ? asked : 1;
  for (int time = 1; time < times; ++time) {
    if (const int code = honest->run(handle, message); code != 0) return code;
  }
  return honest->run(handle, message);
}

void release_and_forget(void* handle) {
  slow_calls.erase(handle);
  honest->release(handle);
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.prepare = prepare_and_note;
  backend.run = run_often;
  backend.release = release_and_forget;
  return &backend;
}
