// SPDX-License-Identifier: Apache-2.0
// A backend that cheats: Open MPI's, except that a call returns at once where this rank's input begins as it did in the
// call before. What the output holds is still right then, unless somebody has written there. The tests of the command
// line run it to see that it comes out as wrong.
#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "suites/backends/honest.h"

namespace {

constexpr std::size_t kMostKept = 4096;  // bytes: refills differ in their first ones, on all ranks at once

struct Kept {
  const std::byte* input = nullptr;
  std::vector<std::byte> begin;  // of the input, in the call before
};

const TuttiBackend* const honest = load_backend(TUTTI_BIN "/libtutti_backend_openmpi.so");

std::map<void*, Kept>& kept() {
  static std::map<void*, Kept> by_handle;
  return by_handle;
}

int prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  const int code = honest->prepare(call, handle, message);
  if (code != 0) return code;
  const std::size_t bytes = static_cast<std::size_t>(call->count) * call->element_bytes;
  kept()[*handle] = {.input = static_cast<const std::byte*>(call->send),
                     .begin = std::vector<std::byte>(std::min(bytes, kMostKept))};
  return 0;
}

int run_on_new_data(void* handle, TuttiBackendMessage* message) {
  Kept& one = kept()[handle];
  if (std::equal(one.begin.begin(), one.begin.end(), one.input)) return 0;
  std::copy_n(one.input, one.begin.size(), one.begin.begin());
  return honest->run(handle, message);
}

void release(void* handle) {
  kept().erase(handle);
  honest->release(handle);
}

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static TuttiBackend backend = pretending(honest, TUTTI_LAZY_NAME);
  backend.prepare = prepare;
  backend.run = run_on_new_data;
  backend.release = release;
  return &backend;
}
