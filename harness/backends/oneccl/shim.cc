// SPDX-License-Identifier: Apache-2.0
// The backend of oneCCL on CPUs, over libfabric. A prepared call holds the arguments of one function of oneCCL; running
// it is that function and the wait for its event. It knows tutti by backend.h alone.
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/oneccl/calls.h"
#include "harness/backends/oneccl/translate.h"
#include "harness/backends/oneccl/world.h"

namespace {

using tutti::backend_oneccl::Group;
using tutti::backend_oneccl::Prepared;
using tutti::backend_oneccl::split;

/// All ranks; null unless open. A process that fails leaves it as it is.
Group* g_world = nullptr;

Group* group_of(void* handle) { return handle == nullptr ? g_world : static_cast<Group*>(handle); }

/// Returns 1, the value of every failure.
int fail(TuttiBackendMessage* message, const std::string& text) {
  std::snprintf(message->text, message->size, "%s", text.c_str());
  return 1;
}

/// Calls `body`. oneCCL throws.
template <class Body>
int guarded(TuttiBackendMessage* message, const char* what, Body body) {
  try {
    body();
    return 0;
  } catch (const std::exception& thrown) {
    return fail(message, std::string(what) + " failed: " + thrown.what());
  }
}

int backend_open(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an error of the call
  if (join->exchange == nullptr) return fail(message, "oneCCL's ranks meet by an exchange, and there is none");
  return guarded(message, "connecting oneCCL's ranks", [&] {
    tutti::backend_oneccl::prepare_environment(*world, *join);
    g_world = tutti::backend_oneccl::connect(*world, *join).release();
  });
}

int backend_describe(TuttiBackendMessage* text) {
  const auto version = ccl::get_library_version();
  const bool is_open = g_world != nullptr;
  const char* const provider = std::getenv("FI_PROVIDER");
  const std::string transport = is_open && provider != nullptr ? std::string("ofi:") + provider : std::string();
  const int length = std::snprintf(
      text->text, text->size,
      R"({"library": "oneCCL", "version": "%u.%u.%u", "transport": "%s", "single_copy": "%s", "settings": "CCL_"})",
      static_cast<unsigned>(version.major), static_cast<unsigned>(version.minor), static_cast<unsigned>(version.update),
      transport.c_str(), is_open ? "none" : "");
  return static_cast<std::size_t>(length) < text->size ? 0 : 1;
}

int backend_split(void* parent, int32_t colour, int32_t key, TuttiBackendGroup* made, TuttiBackendMessage* message) {
  *made = {};
  return guarded(message, "splitting a communicator of oneCCL", [&] {
    auto group = split(*group_of(parent), colour, key);
    if (group == nullptr) return;
    *made = {.ranks = group->ranks(), .rank = group->rank(), .handle = group.get()};
    group.release();
  });
}

int leave(Group* group, TuttiBackendMessage* message) {
  return guarded(message, "leaving a communicator of oneCCL", [group] {
    ccl::barrier(group->communicator).wait();  // one that disconnects would disturb those that are still at work
    delete group;
  });
}

int backend_free_group(void* handle, TuttiBackendMessage* message) {
  return leave(static_cast<Group*>(handle), message);
}

int backend_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  Prepared ignored{.group = group_of(call->group)};
  const std::string refusal = translate(*call, ignored);
  return refusal.empty() ? 0 : fail(reason, refusal);
}

int backend_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  auto prepared = std::make_unique<Prepared>();
  prepared->group = group_of(call->group);
  if (const std::string refusal = translate(*call, *prepared); !refusal.empty()) return fail(message, refusal);
  *handle = prepared.release();
  return 0;
}

int backend_run(void* handle, TuttiBackendMessage* message) {
  return guarded(message, "the call of oneCCL", [handle] {
    auto& prepared = *static_cast<Prepared*>(handle);
    prepared.start();
    prepared.wait();
  });
}

int backend_post(void* handle, TuttiBackendMessage* message) {
  return guarded(message, "the call of oneCCL", [handle] {
    auto& prepared = *static_cast<Prepared*>(handle);
    prepared.start();
    // All ranks begin what is on a communicator in one order. An answer would come behind calls that are posted later.
    if (prepared.second != nullptr) prepared.wait();
  });
}

int backend_test(void* handle, int32_t* is_complete, TuttiBackendMessage* message) {
  return guarded(message, "the call of oneCCL", [=] { *is_complete = static_cast<Prepared*>(handle)->test() ? 1 : 0; });
}

int backend_wait(void* handle, TuttiBackendMessage* message) {
  return guarded(message, "the call of oneCCL", [handle] { static_cast<Prepared*>(handle)->wait(); });
}

void backend_release(void* handle) { delete static_cast<Prepared*>(handle); }

int backend_close(TuttiBackendMessage* message) {
  Group* const world = g_world;
  g_world = nullptr;
  return world == nullptr ? 0 : leave(world, message);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_BACKEND_ABI,
                                    .name = TUTTI_BACKEND_NAME,
                                    .starter = TUTTI_STARTER_SPAWN,
                                    .start_command = nullptr,
                                    .open = backend_open,
                                    .describe = backend_describe,
                                    .split = backend_split,
                                    .free_group = backend_free_group,
                                    .supports = backend_supports,
                                    .prepare = backend_prepare,
                                    .run = backend_run,
                                    .post = backend_post,
                                    .test = backend_test,
                                    .wait = backend_wait,
                                    .release = backend_release,
                                    .close = backend_close,
                                    .begin_group = nullptr,
                                    .end_group = nullptr,
                                    .register_buffer = nullptr,
                                    .forget_buffer = nullptr,
                                    .poll_error = nullptr,
                                    .abort = nullptr,
                                    .allocate = nullptr,
                                    .give_back = nullptr};
  return &backend;
}
