// SPDX-License-Identifier: Apache-2.0
// The backend of NCCL. A prepared call holds the arguments of NCCL's function; posting it is that function and nothing
// else, so that a graph can capture it. It knows tutti by backend.h, and by the table of CUDA's functions.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/backends/backend.h"
#include "harness/backends/nccl/calls.h"
#include "harness/backends/nccl/translate.h"
#include "harness/backends/nccl/world.h"

namespace {

using tutti::backend_nccl::Abilities;
using tutti::backend_nccl::Answer;
using tutti::backend_nccl::Group;
using tutti::backend_nccl::kInProgress;
using tutti::backend_nccl::kSuccess;
using tutti::backend_nccl::Nccl;
using tutti::backend_nccl::OnDevice;
using tutti::backend_nccl::Prepared;
using tutti::backend_nccl::Question;
using tutti::backend_nccl::World;

/// All ranks; null unless open.
World* g_world = nullptr;

/// Memory that NCCL was told of.
struct Registered {
  void* handle = nullptr;  ///< of ncclCommRegister
  tutti::backend_nccl::Window window = nullptr;
  std::shared_ptr<Group> group;
  uint64_t bytes = 0;
};

/// Returns 0 where there is no text, else 1, the value of every failure.
int result(TuttiBackendMessage* message, const std::string& text) {
  if (text.empty()) return 0;
  std::snprintf(message->text, message->size, "%s", text.c_str());
  return 1;
}

std::string text_of(Answer answer, const Prepared& prepared) {
  return "rank " + std::to_string(prepared.group->rank) + " of " + std::to_string(prepared.group->ranks) + ": " +
         prepared.what + ": NCCL says: " + prepared.nccl->text_of(answer, prepared.group->comm);
}

int backend_open(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  auto made = std::make_unique<World>();
  const std::string wrong = made->open(*world, *join);
  if (wrong.empty()) {
    g_world = made.release();
  } else {
    static_cast<void>(made->close());  // what it has of the GPUs' memory
  }
  return result(message, wrong);
}

int backend_describe(TuttiBackendMessage* text) {
  std::string json = to_json(tutti::backend_nccl::libraries());
  if (g_world == nullptr) json.insert(json.size() - 1, R"(, "settings": "NCCL_")");
  std::snprintf(text->text, text->size, "%s", json.c_str());
  return json.size() < text->size ? 0 : 1;
}

int backend_split(void* parent, int32_t colour, int32_t key, TuttiBackendGroup* made, TuttiBackendMessage* message) {
  *made = {};
  std::shared_ptr<Group> group;
  const std::string wrong = g_world->split(parent, colour, key, group);
  if (group != nullptr) *made = {.ranks = group->ranks, .rank = group->rank, .handle = group.get()};
  return result(message, wrong);
}

int backend_free_group(void* handle, TuttiBackendMessage* message) { return result(message, g_world->free(handle)); }

/// What a call becomes, up to what is allocated for it.
std::string translated(const TuttiBackendCall& call, Prepared& prepared) {
  if (g_world == nullptr) return translate(call, {}, prepared);
  prepared.world = g_world;
  prepared.nccl = &g_world->nccl();
  prepared.group = g_world->group(call.group, call.local);
  if (prepared.group == nullptr) return "this process has no rank " + std::to_string(call.local) + " of its own";
  return translate(call, {.version = g_world->nccl().version, .capability = g_world->capability()}, prepared);
}

int backend_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  Prepared ignored;
  return result(reason, translated(*call, ignored));
}

std::string make_op(const TuttiBackendCall& call, Prepared& prepared) {
  if (call.factor == nullptr) return "premul_sum without a factor: a null pointer";
  const Answer answer =
      prepared.nccl->ncclRedOpCreatePreMulSum(&prepared.op, const_cast<void*>(call.factor), prepared.type,
                                              tutti::backend_nccl::kScalarOfHost, prepared.group->comm);
  return answer == kSuccess ? "" : text_of(answer, prepared);
}

int backend_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  auto prepared = std::make_unique<Prepared>();
  if (std::string wrong = translated(*call, *prepared); !wrong.empty()) return result(message, wrong);
  const auto& cuda = g_world->cuda();
  const OnDevice here(cuda, prepared->group->device);
  if (call->asynchronous != 0) {
    const auto error = cuda.cudaEventCreateWithFlags(&prepared->event, tutti::cuda::kEventDisableTiming);
    if (error != tutti::cuda::kSuccess) return result(message, cuda.text_of("cudaEventCreateWithFlags", error));
  }
  if (prepared->has_own_op) {
    if (std::string wrong = make_op(*call, *prepared); !wrong.empty()) {
      if (prepared->event != nullptr) cuda.cudaEventDestroy(prepared->event);
      return result(message, wrong);
    }
  }
  *handle = prepared.release();
  return 0;
}

/// In an open group NCCL starts it when the group ends.
std::string start(Prepared& prepared) {
  Answer answer = prepared.function(prepared);
  if (answer == kInProgress && !g_world->is_in_group()) answer = g_world->settle(prepared.group->comm, answer);
  return answer == kSuccess || (answer == kInProgress && g_world->is_in_group()) ? "" : text_of(answer, prepared);
}

int backend_run(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  const Group& group = *prepared.group;
  if (group.of_this_process > 1) {
    return result(message,
                  "one of " + std::to_string(group.of_this_process) +
                      " ranks of a process cannot run a call of NCCL, which waits for the others: they post it in "
                      "a group");
  }
  std::string wrong = start(prepared);
  if (wrong.empty()) {
    wrong = g_world->wait({.ask = g_world->cuda().cudaStreamQuery, .of = prepared.stream}, group, prepared.what);
  }
  return result(message, wrong);
}

int backend_post(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  prepared.is_posted = true;
  prepared.is_recorded = false;
  return result(message, start(prepared));
}

/// The event is recorded when it is first asked for, behind all that is on the stream by then. So nothing but NCCL's
/// call stands between two posts, or in a graph.
std::string record(Prepared& prepared) {
  if (prepared.is_recorded) return {};
  const auto& cuda = g_world->cuda();
  const auto error = cuda.cudaEventRecord(prepared.event, prepared.stream);
  prepared.is_recorded = error == tutti::cuda::kSuccess;
  return prepared.is_recorded ? "" : cuda.text_of("cudaEventRecord", error);
}

Question question_of(const Prepared& prepared) { return {.ask = g_world->cuda().cudaEventQuery, .of = prepared.event}; }

int backend_test(void* handle, int32_t* is_complete, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  bool is_done = !prepared.is_posted;
  std::string wrong;
  if (!is_done && !g_world->is_in_group()) {
    wrong = record(prepared);
    if (wrong.empty()) {
      wrong = g_world->test(question_of(prepared), *prepared.group, prepared.what, is_done);
    }
  }
  if (is_done) prepared.is_posted = false;
  *is_complete = is_done ? 1 : 0;
  return result(message, wrong);
}

int backend_wait(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  if (!prepared.is_posted) return 0;
  if (g_world->is_in_group()) return result(message, prepared.what + " is waited for before its group has ended");
  std::string wrong = record(prepared);
  if (wrong.empty()) wrong = g_world->wait(question_of(prepared), *prepared.group, prepared.what);
  if (wrong.empty()) prepared.is_posted = false;
  return result(message, wrong);
}

void backend_release(void* handle) {
  const std::unique_ptr<Prepared> prepared(static_cast<Prepared*>(handle));
  if (prepared->event != nullptr) prepared->world->cuda().cudaEventDestroy(prepared->event);
  if (prepared->has_own_op && prepared->group->comm != nullptr) {
    prepared->nccl->ncclRedOpDestroy(prepared->op, prepared->group->comm);
  }
}

int backend_close(TuttiBackendMessage* message) {
  const std::unique_ptr<World> world(std::exchange(g_world, nullptr));
  return world == nullptr ? 0 : result(message, world->close());
}

/// Windows that were asked for in the open group: they are there when it has ended.
std::vector<const Registered*> g_awaited_windows;

std::string no_window(uint64_t bytes) {
  return "NCCL makes no symmetric window of " + std::to_string(bytes) +
         " bytes: the GPUs cannot address each other's memory, or NCCL_WIN_ENABLE is 0";
}

int backend_begin_group(TuttiBackendMessage* message) { return result(message, g_world->begin_group()); }
int backend_end_group(TuttiBackendMessage* message) {
  std::string wrong = g_world->end_group();
  for (const Registered* const one : std::exchange(g_awaited_windows, {})) {
    if (wrong.empty() && one->window == nullptr) wrong = no_window(one->bytes);
  }
  return result(message, wrong);
}

std::string register_with(const Nccl& nccl, void* memory, uint64_t bytes, bool is_window, Registered& made) {
  const auto comm = made.group->comm;
  if (!is_window && nccl.ncclCommRegister == nullptr) {
    return "NCCL " + tutti::backend_nccl::version_text(nccl.version) + " registers no buffers: 2.19 is the first";
  }
  if (is_window && nccl.ncclCommWindowRegister == nullptr) {
    return "NCCL " + tutti::backend_nccl::version_text(nccl.version) + " has no symmetric windows: 2.27 is the first";
  }
  Answer answer =
      is_window ? nccl.ncclCommWindowRegister(comm, memory, bytes, &made.window, tutti::backend_nccl::kSymmetricWindow)
                : nccl.ncclCommRegister(comm, memory, bytes, &made.handle);
  if (!g_world->is_in_group()) answer = g_world->settle(comm, answer);
  if (answer != kSuccess && answer != kInProgress) {
    return "registering " + std::to_string(bytes) + " bytes" + (is_window ? " as a symmetric window" : "") +
           ": NCCL says: " + nccl.text_of(answer, comm) + (is_window ? " (it takes memory of ncclMemAlloc)" : "");
  }
  made.bytes = bytes;
  if (is_window && g_world->is_in_group()) g_awaited_windows.push_back(&made);
  return is_window && made.window == nullptr && !g_world->is_in_group() ? no_window(bytes) : "";
}

int backend_register(void* of, int32_t local, void* memory, uint64_t bytes, int32_t kind, void** handle,
                     TuttiBackendMessage* message) {
  auto made = std::make_unique<Registered>();
  made->group = g_world->group(of, local);
  if (made->group == nullptr)
    return result(message, "this process has no rank " + std::to_string(local) + " of its own");
  std::string wrong = register_with(g_world->nccl(), memory, bytes, kind != 0, *made);
  if (wrong.empty()) *handle = made.release();
  return result(message, wrong);
}

int backend_forget(int32_t /*local*/, void* handle, TuttiBackendMessage* message) {
  const std::unique_ptr<Registered> gone(static_cast<Registered*>(handle));
  const auto comm = gone->group->comm;
  if (comm == nullptr) return 0;  // it has gone with the world
  const Nccl& nccl = g_world->nccl();
  const bool is_window = gone->window != nullptr;
  if (!is_window && gone->handle == nullptr) return 0;
  const Answer answer = g_world->settle(comm, is_window ? nccl.ncclCommWindowDeregister(comm, gone->window)
                                                        : nccl.ncclCommDeregister(comm, gone->handle));
  return result(message, answer == kSuccess ? "" : "forgetting a buffer: NCCL says: " + nccl.text_of(answer, comm));
}

int backend_allocate(int32_t local, uint64_t bytes, void** memory, TuttiBackendMessage* message) {
  const auto& group = g_world->group(nullptr, local);
  const Nccl& nccl = g_world->nccl();
  if (nccl.ncclMemAlloc == nullptr) {
    return result(message, "NCCL " + tutti::backend_nccl::version_text(nccl.version) +
                               " has no memory of its own: 2.19 is the first");
  }
  const OnDevice here(g_world->cuda(), group->device);
  const Answer answer = nccl.ncclMemAlloc(memory, bytes);
  if (answer == kSuccess) return 0;
  return result(message, std::to_string(bytes) + " bytes of NCCL's memory on GPU " + std::to_string(group->device) +
                             ": NCCL says: " + nccl.text_of(answer, group->comm));
}

int backend_give_back(int32_t local, void* memory, TuttiBackendMessage* message) {
  const auto& group = g_world->group(nullptr, local);
  const OnDevice here(g_world->cuda(), group->device);
  const Answer answer = g_world->nccl().ncclMemFree(memory);
  return result(message, answer == kSuccess ? "" : "ncclMemFree: " + g_world->nccl().text_of(answer, group->comm));
}

int backend_poll_error(int32_t local, TuttiBackendMessage* message) {
  return g_world == nullptr ? 0 : result(message, g_world->error_of(local));
}

int backend_abort(int32_t local, TuttiBackendMessage* message) {
  return g_world == nullptr ? 0 : result(message, g_world->abort(local));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_BACKEND_ABI,
                                    .name = TUTTI_BACKEND_NAME,
                                    .starter = TUTTI_STARTER_NONE,
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
                                    .begin_group = backend_begin_group,
                                    .end_group = backend_end_group,
                                    .register_buffer = backend_register,
                                    .forget_buffer = backend_forget,
                                    .poll_error = backend_poll_error,
                                    .abort = backend_abort,
                                    .allocate = backend_allocate,
                                    .give_back = backend_give_back};
  return &backend;
}
