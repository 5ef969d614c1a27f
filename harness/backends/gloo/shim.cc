// SPDX-License-Identifier: Apache-2.0
// The backend of Gloo, over TCP: on the loopback where all ranks are on one host. A prepared call holds the arguments
// of one function of Gloo; running it is that function and nothing else. It knows tutti by backend.h alone.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <gloo/config.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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
bool g_spans_hosts = false;

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

/// Every rank's text, in pieces of what an exchange takes. Throws.
std::vector<std::string> exchange_of_world(const TuttiBackendGroup& world, const TuttiBackendJoin& join,
                                           const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(world.ranks);
  const auto exchange = [&](const void* piece, void* all, std::size_t bytes) {
    if (join.exchange(join.context, piece, all, bytes) != 0) throw std::runtime_error("the ranks' exchange failed");
  };
  const std::uint64_t bytes = mine.size();
  std::vector<std::uint64_t> lengths(ranks);
  exchange(&bytes, lengths.data(), sizeof(bytes));
  const std::uint64_t longest = *std::ranges::max_element(lengths);
  std::vector<std::string> texts(ranks);
  std::string pieces(ranks * TUTTI_EXCHANGE_BYTES, '\0');
  for (std::uint64_t at = 0; at < longest; at += TUTTI_EXCHANGE_BYTES) {
    std::string piece = at < bytes ? mine.substr(at, TUTTI_EXCHANGE_BYTES) : "";
    piece.resize(TUTTI_EXCHANGE_BYTES);
    exchange(piece.data(), pieces.data(), TUTTI_EXCHANGE_BYTES);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      texts[rank] += pieces.substr(rank * TUTTI_EXCHANGE_BYTES, TUTTI_EXCHANGE_BYTES);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) texts[rank].resize(lengths[rank]);
  return texts;
}

int backend_open(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an error of the call; Gloo writes to its socket as if it lived
  if (join->exchange == nullptr) return fail(message, "Gloo's ranks meet by an exchange, and there is none");
  return guarded(message, "connecting Gloo's ranks", [&] {
    g_spans_hosts = join->address != nullptr;
    g_world = new Group(tutti::backend_gloo::make_device(g_spans_hosts ? join->address : "127.0.0.1"),
                        {.rank = world->rank, .ranks = world->ranks},
                        [&](const std::string& mine) { return exchange_of_world(*world, *join, mine); });
  });
}

int backend_describe(TuttiBackendMessage* text) {
  const bool is_open = g_world != nullptr;
  const int length = std::snprintf(
      text->text, text->size, R"({"library": "Gloo", "version": "%d.%d.%d", "transport": "%s", "single_copy": "%s"})",
      GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH,
      !is_open        ? ""
      : g_spans_hosts ? "tcp"
                      : "tcp:lo",
      is_open ? "none" : "");
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
