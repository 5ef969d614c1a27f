// SPDX-License-Identifier: Apache-2.0
// Open MPI's table with the start command TUTTI_TEST_MPIRUN in the place of its mpirun. Its ranks start, or fail in
// their start as TUTTI_TEST_FAULT says. The tests of the command line have a script there that works at first.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "suites/backends/honest.h"

namespace {

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int open_or_fail(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  const std::string fault = variable("TUTTI_TEST_FAULT");
  if (fault == "crash") std::raise(SIGSEGV);
  if (fault == "leave" && world->rank == 1) _exit(15);
  if (fault == "error") {
    std::snprintf(message->text, message->size, "no licence for this machine");
    return 1;
  }
  return honest->open(world, join, message);
}

int other_start_command(TuttiBackendMessage* text) {
  const int failed = honest->start_command(text);
  const std::string honest_text = text->text;
  const std::size_t first = honest_text.find('[') + 1;
  const std::string changed = honest_text.substr(0, first) + '"' + variable("TUTTI_TEST_MPIRUN") + '"' +
                              honest_text.substr(honest_text.find(',', first));
  std::snprintf(text->text, text->size, "%s", changed.c_str());
  return failed;
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.open = open_or_fail;
  backend.start_command = other_start_command;
  return &backend;
}
