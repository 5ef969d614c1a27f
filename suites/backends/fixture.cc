// SPDX-License-Identifier: Apache-2.0
// A backend of one rank for tests of the loader: all it does is copy. What it posted is complete when it was tested
// twice. What is wrong with it is set when it is compiled: TUTTI_FIXTURE_ABI, TUTTI_FIXTURE_NAME.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "harness/backends/backend.h"

namespace {

int say(TuttiBackendMessage* message, const char* text) {
  std::snprintf(message->text, message->size, "%s", text);
  return 1;
}

struct Prepared {
  TuttiBackendCall call;
  int tests_until_complete = 0;
};

/// How many groups there are besides the world.
int groups = 0;

int fixture_open(const TuttiBackendGroup* world, const TuttiBackendJoin* /*join*/, TuttiBackendMessage* message) {
  if (world->ranks == 1) return 0;
  std::snprintf(message->text, message->size, "there is 1 rank here, not %d", world->ranks);
  return 1;
}

int fixture_describe(TuttiBackendMessage* text) {
  say(text, R"({"library": "fixture", "version": "1", "transport": "", "single_copy": ""})");
  return 0;
}

int fixture_split(void* /*parent*/, int32_t colour, int32_t key, TuttiBackendGroup* group,
                  TuttiBackendMessage* message) {
  if (colour > 1000) return say(message, "colours end at 1000");
  *group = {};
  if (colour < 0) return 0;
  ++groups;
  *group = {.ranks = 1, .rank = 0, .handle = new int32_t(key)};
  return 0;
}

int fixture_free_group(void* group, TuttiBackendMessage* message) {
  if (groups == 0) return say(message, "there is no group to free");
  --groups;
  delete static_cast<int32_t*>(group);
  return 0;
}

int fixture_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  return std::string_view(call->collective) == "broadcast" ? 0 : say(reason, "the fixture only broadcasts");
}

int fixture_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  if (fixture_supports(call, message) != 0) return 1;
  *handle = new Prepared{.call = *call};
  return 0;
}

int fixture_run(void* handle, TuttiBackendMessage* message) {
  const TuttiBackendCall& call = static_cast<const Prepared*>(handle)->call;
  if (call.send == nullptr) return say(message, "nothing to copy");
  std::memcpy(call.recv, call.send, static_cast<std::size_t>(call.count) * call.element_bytes);
  return 0;
}

int fixture_post(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  if (prepared.call.asynchronous == 0) return say(message, "prepared to be run, not posted");
  if (prepared.call.send == nullptr) return say(message, "nothing to copy");
  prepared.tests_until_complete = 2;
  return 0;
}

int fixture_test(void* handle, int32_t* is_complete, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  const bool completes = prepared.tests_until_complete == 1;
  if (prepared.tests_until_complete > 0) --prepared.tests_until_complete;
  *is_complete = prepared.tests_until_complete == 0 ? 1 : 0;
  return completes ? fixture_run(handle, message) : 0;
}

int fixture_wait(void* handle, TuttiBackendMessage* message) {
  int32_t is_complete = 0;
  while (is_complete == 0) {
    if (fixture_test(handle, &is_complete, message) != 0) return 1;
  }
  return 0;
}

void fixture_release(void* handle) { delete static_cast<Prepared*>(handle); }

int fixture_close(TuttiBackendMessage* message) { return say(message, "the fixture never closes"); }

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_FIXTURE_ABI,
                                    .name = TUTTI_FIXTURE_NAME,
                                    .open = fixture_open,
                                    .describe = fixture_describe,
                                    .split = fixture_split,
                                    .free_group = fixture_free_group,
                                    .supports = fixture_supports,
                                    .prepare = fixture_prepare,
                                    .run = fixture_run,
                                    .post = fixture_post,
                                    .test = fixture_test,
                                    .wait = fixture_wait,
                                    .release = fixture_release,
                                    .close = fixture_close};
  return &backend;
}
