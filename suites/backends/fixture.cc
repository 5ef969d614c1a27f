// SPDX-License-Identifier: Apache-2.0
// A backend of one rank for tests of the loader: all it does is copy. What is wrong with it is set when it is compiled:
// TUTTI_FIXTURE_ABI, TUTTI_FIXTURE_NAME.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "harness/backends/backend.h"

namespace {

int say(TuttiBackendMessage* message, const char* text) {
  std::snprintf(message->text, message->size, "%s", text);
  return 1;
}

int fixture_open(const TuttiBackendWorld* world, TuttiBackendMessage* message) {
  if (world->ranks == 1) return 0;
  std::snprintf(message->text, message->size, "there is 1 rank here, not %d", world->ranks);
  return 1;
}

int fixture_describe(TuttiBackendMessage* text) {
  say(text, R"({"library": "fixture", "version": "1", "transport": "", "single_copy": ""})");
  return 0;
}

int fixture_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  return std::string_view(call->collective) == "broadcast" ? 0 : say(reason, "the fixture only broadcasts");
}

int fixture_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  if (fixture_supports(call, message) != 0) return 1;
  *handle = new TuttiBackendCall(*call);
  return 0;
}

int fixture_run(void* handle, TuttiBackendMessage* message) {
  const auto& call = *static_cast<const TuttiBackendCall*>(handle);
  if (call.send == nullptr) return say(message, "nothing to copy");
  std::memcpy(call.recv, call.send, static_cast<std::size_t>(call.count) * call.element_bytes);
  return 0;
}

void fixture_release(void* handle) { delete static_cast<TuttiBackendCall*>(handle); }

int fixture_close(TuttiBackendMessage* message) { return say(message, "the fixture never closes"); }

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_FIXTURE_ABI,
                                    .name = TUTTI_FIXTURE_NAME,
                                    .open = fixture_open,
                                    .describe = fixture_describe,
                                    .supports = fixture_supports,
                                    .prepare = fixture_prepare,
                                    .run = fixture_run,
                                    .release = fixture_release,
                                    .close = fixture_close};
  return &backend;
}
