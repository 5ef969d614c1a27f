// SPDX-License-Identifier: Apache-2.0
// A backend that cheats: Open MPI's, except that most of its calls return at once. The tests of the command line run it
// to see that it comes out as wrong, and what it says of itself, which is no JSON. TUTTI_LAZY_WORKS: the first that do
// their work, of every TUTTI_LAZY_OF calls.
#include <cstdint>
#include <cstdio>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

int run_now_and_then(void* handle, TuttiBackendMessage* message) {
  static std::uint64_t calls = 0;
  const bool works = calls++ % TUTTI_LAZY_OF < TUTTI_LAZY_WORKS;
  return works ? honest->run(handle, message) : 0;
}

int describe_in_words(TuttiBackendMessage* text) {
  std::snprintf(text->text, text->size, "Open MPI, now and \"then\"");
  return 0;
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.run = run_now_and_then;
  backend.describe = describe_in_words;
  return &backend;
}
