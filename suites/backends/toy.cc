// SPDX-License-Identifier: Apache-2.0
// A backend that is no MPI, has no groups, and does all_reduce of float sums on one host: each rank copies its input
// into shared memory, and adds up all of them after a barrier. `toy_in_a_hurry` lacks the second barrier: a rank's next
// call may overwrite what others still read. The tests of the command line check both.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "harness/backends/backend.h"

namespace {

constexpr int kMostRanks = 16;
constexpr std::int64_t kMost = 1 << 18;  // elements

struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> generation;
  float inputs[kMostRanks][kMost];
};

int ranks = 0, rank = 0;
Shared* shared = nullptr;

int say(TuttiBackendMessage* message, const char* text) {
  std::snprintf(message->text, message->size, "%s", text);
  return 1;
}

void wait_for_all() {
  const int generation = shared->generation.load();
  if (shared->arrived.fetch_add(1) + 1 == ranks) {
    shared->arrived.store(0);
    shared->generation.store(generation + 1);
    return;
  }
  while (shared->generation.load() == generation) sched_yield();
}

int toy_open(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  ranks = world->ranks;
  rank = world->rank;
  if (ranks > kMostRanks) return say(message, "the toy has at most 16 ranks");
  char name[64] = {}, names[kMostRanks][64] = {};
  std::snprintf(name, sizeof name, "/tutti-toy-%d", static_cast<int>(getpid()));
  int file = rank == 0 ? shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600) : -1;
  const bool is_made = rank != 0 || (file >= 0 && ftruncate(file, sizeof(Shared)) == 0);
  if (join->exchange(join->context, name, names, sizeof name) != 0) return say(message, "no exchange");
  if (rank != 0) file = shm_open(names[0], O_RDWR, 0600);
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int lacks = join->exchange(join->context, name, names, sizeof name);
  if (rank == 0) shm_unlink(name);
  if (file >= 0) close(file);
  if (!is_made || memory == MAP_FAILED || lacks != 0) return say(message, "no shared memory");
  shared = static_cast<Shared*>(memory);
  return 0;
}

int toy_describe(TuttiBackendMessage* text) {
  say(text, R"({"library": "toy", "version": "1", "transport": "shm", "single_copy": "none"})");
  return 0;
}

int toy_split(void*, std::int32_t, std::int32_t, TuttiBackendGroup*, TuttiBackendMessage* message) {
  return say(message, "toy has no groups");
}
int toy_free_group(void*, TuttiBackendMessage* message) { return say(message, "toy has no groups"); }

int toy_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  if (std::string_view(call->collective) != "all_reduce") return say(reason, "the toy has all_reduce only");
  if (std::string_view(call->dtype) != "float" || std::string_view(call->op) != "sum") {
    return say(reason, "the toy adds up floats only");
  }
  return call->count <= kMost ? 0 : say(reason, "the toy has calls of 256 Ki elements at most");
}

int toy_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  if (toy_supports(call, message) != 0) return 1;
  *handle = new TuttiBackendCall(*call);
  return 0;
}

int toy_run(void* handle, TuttiBackendMessage*) {
  const auto& call = *static_cast<const TuttiBackendCall*>(handle);
  std::memcpy(shared->inputs[rank], call.send, static_cast<std::size_t>(call.count) * sizeof(float));
  wait_for_all();
  auto* const sums = static_cast<float*>(call.recv);
  for (std::int64_t i = 0; i < call.count; ++i) {
    float sum = shared->inputs[0][i];
    for (int peer = 1; peer < ranks; ++peer) sum += shared->inputs[peer][i];
    sums[i] = sum;
  }
  if (TUTTI_TOY_WAITS_TWICE) wait_for_all();
  return 0;
}

int toy_post(void*, TuttiBackendMessage* message) { return say(message, "the toy has no nonblocking calls"); }
int toy_test(void*, std::int32_t*, TuttiBackendMessage* message) { return toy_post(nullptr, message); }
int toy_wait(void*, TuttiBackendMessage* message) { return toy_post(nullptr, message); }
void toy_release(void* handle) { delete static_cast<TuttiBackendCall*>(handle); }
int toy_close(TuttiBackendMessage*) { return munmap(shared, sizeof(Shared)); }

}  // namespace

extern "C" const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend = [] {
    TuttiBackend toy{};
    toy.abi = TUTTI_BACKEND_ABI;
    toy.name = TUTTI_TOY_NAME;
    toy.starter = TUTTI_STARTER_SPAWN;
    toy.open = toy_open;
    toy.describe = toy_describe;
    toy.split = toy_split;
    toy.free_group = toy_free_group;
    toy.supports = toy_supports;
    toy.prepare = toy_prepare;
    toy.run = toy_run;
    toy.post = toy_post;
    toy.test = toy_test;
    toy.wait = toy_wait;
    toy.release = toy_release;
    toy.close = toy_close;
    return toy;
  }();
  return &backend;
}
