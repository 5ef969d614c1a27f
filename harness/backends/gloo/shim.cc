// SPDX-License-Identifier: Apache-2.0
// The backend of Gloo, over TCP on the loopback. A prepared call holds the arguments of one function of Gloo; running
// it is that function and nothing else. It knows tutti by backend.h alone.
#include <csignal>
#include <cstdio>
#include <exception>
#include <gloo/config.h>
#include <memory>
#include <string>

#include "harness/backends/backend.h"
#include "harness/backends/gloo/calls.h"
#include "harness/backends/gloo/group.h"
#include "harness/backends/gloo/translate.h"

namespace {

using tutti::backend_gloo::Arguments;
using tutti::backend_gloo::Call;
using tutti::backend_gloo::Group;
using tutti::backend_gloo::Seat;
using tutti::backend_gloo::Task;

/// All ranks; null unless open. A process that fails leaves it as it is: its threads may wait for ranks that are gone.
Group* g_world = nullptr;

struct Prepared {
  Call call;
  Group& group;
  std::size_t lane;  ///< of `group`, where it is completed when it is posted
  Task task;
};

Group* group_of(void* handle) { return handle == nullptr ? g_world : static_cast<Group*>(handle); }

/// Returns 1, the value of every failure.
int fail(TuttiBackendMessage* message, const std::string& text) {
  std::snprintf(message->text, message->size, "%s", text.c_str());
  return 1;
}

/// Calls `body`. Gloo throws.
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
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an error of the call; Gloo writes to its socket as if it lived
  if (join->directory == nullptr) return fail(message, "Gloo's ranks meet in a directory, and there is none");
  return guarded(message, "connecting Gloo's ranks", [&] {
    const auto network = std::make_shared<tutti::backend_gloo::Network>(join->directory);
    g_world = new Group(network, {.rank = world->rank, .ranks = world->ranks}, "world");
  });
}

int backend_describe(TuttiBackendMessage* text) {
  const bool is_open = g_world != nullptr;
  const int length = std::snprintf(
      text->text, text->size, R"({"library": "Gloo", "version": "%d.%d.%d", "transport": "%s", "single_copy": "%s"})",
      GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH, is_open ? "tcp:lo" : "", is_open ? "none" : "");
  return static_cast<std::size_t>(length) < text->size ? 0 : 1;
}

int backend_split(void* parent, int32_t colour, int32_t key, TuttiBackendGroup* made, TuttiBackendMessage* message) {
  *made = {};
  return guarded(message, "splitting a group of Gloo", [&] {
    Group* const group = group_of(parent)->split(colour, key).release();
    if (group != nullptr) *made = {.ranks = group->seat().ranks, .rank = group->seat().rank, .handle = group};
  });
}

int leave(Group* group, TuttiBackendMessage* message) {
  return guarded(message, "leaving a group of Gloo", [group] {
    group->meet();
    delete group;
  });
}

int backend_free_group(void* handle, TuttiBackendMessage* message) {
  return leave(static_cast<Group*>(handle), message);
}

int backend_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  const Group* const group = group_of(call->group);
  Arguments ignored{.seat = group == nullptr ? Seat() : group->seat()};
  const std::string refusal = translate(*call, ignored);
  return refusal.empty() ? 0 : fail(reason, refusal);
}

std::size_t lane_of(const TuttiBackendCall& call, const Group& group) {
  const std::string_view collective = call.collective;
  if (collective == "send") return group.lane_to(call.root);
  if (collective == "recv") return group.lane_from(call.root);
  return group.lane_of_collectives();
}

int backend_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  Group& group = *group_of(call->group);
  Arguments arguments{.seat = group.seat(), .context = group.context(), .mailbox = &group.mailbox()};
  if (const std::string refusal = translate(*call, arguments); !refusal.empty()) return fail(message, refusal);
  return guarded(message, "preparing a call of Gloo", [&] {
    auto* const prepared = new Prepared{.call = tutti::backend_gloo::find_row(call->collective)->make(arguments),
                                        .group = group,
                                        .lane = lane_of(*call, group),
                                        .task = {}};
    prepared->task.work = &prepared->call.finish;
    *handle = prepared;
  });
}

int backend_post(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  return guarded(message, "the call of Gloo", [&prepared] {
    if (prepared.call.start) prepared.call.start();
    prepared.group.lane(prepared.lane).push(prepared.task);
  });
}

int result_of(const Task& task, TuttiBackendMessage* message) {
  return task.error.empty() ? 0 : fail(message, "the call of Gloo failed: " + task.error);
}

int backend_test(void* handle, int32_t* is_complete, TuttiBackendMessage* message) {
  const Task& task = static_cast<Prepared*>(handle)->task;
  *is_complete = task.is_done ? 1 : 0;
  return *is_complete != 0 ? result_of(task, message) : 0;
}

int backend_wait(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  if (!prepared.task.is_done) prepared.group.lane(prepared.lane).wait(prepared.task);
  return result_of(prepared.task, message);
}

int backend_run(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  if (!prepared.group.is_idle(prepared.lane)) {  // after what was posted
    const int failed = backend_post(handle, message);
    return failed != 0 ? failed : backend_wait(handle, message);
  }
  return guarded(message, "the call of Gloo", [&prepared] {
    if (prepared.call.start) prepared.call.start();
    prepared.call.finish();
  });
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
                                    .needs = TUTTI_NEEDS_DIRECTORY,
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
