// SPDX-License-Identifier: Apache-2.0
// The MPI backend: one source for every MPI, compiled once per library (scripts/build-backend). A prepared call holds
// the arguments of one MPI function; running it is that function and nothing else. It knows tutti by backend.h alone.
//
// Compiled with TUTTI_BACKEND_NAME, the name under which this MPI is known, and TUTTI_MPIRUN, the path of its mpirun.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include "harness/backends/backend.h"
#include "harness/backends/mpi/calls.h"
#include "harness/backends/mpi/library.h"
#include "harness/backends/mpi/start.h"
#include "harness/backends/mpi/translate.h"

namespace {

using tutti::backend_mpi::Group;
using tutti::backend_mpi::Prepared;
using tutti::backend_mpi::translate;

/// The state of the process: there is one MPI in it.
Group g_world;
bool g_is_initialised_here = false;

const Group& group_of(void* handle) { return handle == nullptr ? g_world : *static_cast<const Group*>(handle); }

/// Writes `text` and returns 1, the value of every failure.
int fail(TuttiBackendMessage* message, const std::string& text) {
  std::snprintf(message->text, message->size, "%s", text.c_str());
  return 1;
}

int fail_mpi(TuttiBackendMessage* message, const char* function, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(message, std::string(function) + " failed: " + text);
}

Group seat_in(MPI_Comm communicator) {
  Group group{.communicator = communicator};
  MPI_Comm_rank(communicator, &group.rank);
  MPI_Comm_size(communicator, &group.ranks);
  return group;
}

/// Errors come back as codes from here on: the default would end the process.
int join_world(TuttiBackendMessage* message) {
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised == 0) {
    int provided = 0;  // other threads of the process never call MPI
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); code != MPI_SUCCESS) {
      return fail_mpi(message, "MPI_Init_thread", code);
    }
    g_is_initialised_here = true;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // groups of it inherit that
  g_world = seat_in(MPI_COMM_WORLD);
  return 0;
}

/// A library may connect its ranks, and take shared memory, only when they first talk. So a place where they cannot is
/// found out here.
int reach_all(TuttiBackendMessage* message) {
  constexpr int kInts = 16384;  // more than any MPI sends without asking the receiver first
  std::vector<int> numbers(kInts, 1);
  const int code = MPI_Allreduce(MPI_IN_PLACE, numbers.data(), kInts, MPI_INT, MPI_SUM, g_world.communicator);
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "the first MPI_Allreduce", code);
}

/// The library takes any name and says nothing of one that it does not know.
int check_settings(TuttiBackendMessage* message) {
  const char* const names = std::getenv("TUTTI_SETTINGS");
  const std::string unknown = tutti::backend_mpi::unknown_variable(names == nullptr ? "" : names);
  if (unknown.empty()) return 0;
  return fail(message, tutti::backend_mpi::library_identity().name + " has no setting '" + unknown +
                           "' in a rank: it does not know the name, or what has it is not in use");
}

int backend_open(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message) {
  if (join->address != nullptr) tutti::backend_mpi::take_interface_of(join->address);
  if (const int failed = join_world(message); failed != 0) return failed;
  const auto [communicator, rank, ranks] = g_world;
  if (const int failed = check_settings(message); failed != 0) return failed;
  if (ranks == world->ranks && rank == world->rank) return reach_all(message);
  const std::string hint =
      ranks == 1 && world->ranks > 1 ? ": the ranks were not started by an mpirun of this MPI" : "";
  return fail(message, tutti::backend_mpi::library_identity().name + " sees rank " + std::to_string(rank) + " of " +
                           std::to_string(ranks) + ", the launcher started rank " + std::to_string(world->rank) +
                           " of " + std::to_string(world->ranks) + hint);
}

/// Returns 1 where the text does not fit.
int write(TuttiBackendMessage* to, const std::string& text) {
  std::snprintf(to->text, to->size, "%s", text.c_str());
  return text.size() < to->size ? 0 : 1;
}

int backend_start_command(TuttiBackendMessage* text) {
  return write(text, tutti::backend_mpi::start_command(TUTTI_MPIRUN));
}

int backend_describe(TuttiBackendMessage* text) {
  const bool is_open = g_world.communicator != MPI_COMM_NULL;
  return write(text, is_open ? tutti::backend_mpi::to_json(tutti::backend_mpi::library_in_use(), false)
                             : tutti::backend_mpi::to_json(tutti::backend_mpi::library_identity(), true));
}

int backend_split(void* parent, int32_t colour, int32_t key, TuttiBackendGroup* made, TuttiBackendMessage* message) {
  MPI_Comm communicator = MPI_COMM_NULL;
  const int code =
      MPI_Comm_split(group_of(parent).communicator, colour < 0 ? MPI_UNDEFINED : colour, key, &communicator);
  if (code != MPI_SUCCESS) return fail_mpi(message, "MPI_Comm_split", code);
  *made = {};
  if (communicator == MPI_COMM_NULL) return 0;
  auto* const group = new Group(seat_in(communicator));
  *made = {.ranks = group->ranks, .rank = group->rank, .handle = group};
  return 0;
}

int backend_free_group(void* handle, TuttiBackendMessage* message) {
  const std::unique_ptr<Group> group(static_cast<Group*>(handle));
  const int code = MPI_Comm_free(&group->communicator);
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "MPI_Comm_free", code);
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

/// run and post: which of MPI's functions it is was settled by prepare.
int backend_call(void* handle, TuttiBackendMessage* message) {
  auto& prepared = *static_cast<Prepared*>(handle);
  const int code = prepared.function(prepared);
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "the MPI call", code);
}

int backend_test(void* handle, int32_t* is_complete, TuttiBackendMessage* message) {
  int flag = 0;
  const int code = MPI_Testall(2, static_cast<Prepared*>(handle)->requests, &flag, MPI_STATUSES_IGNORE);
  *is_complete = flag;
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "MPI_Testall", code);
}

int backend_wait(void* handle, TuttiBackendMessage* message) {
  const int code = MPI_Waitall(2, static_cast<Prepared*>(handle)->requests, MPI_STATUSES_IGNORE);
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "MPI_Waitall", code);
}

void backend_release(void* handle) { delete static_cast<Prepared*>(handle); }

int backend_close(TuttiBackendMessage* message) {
  g_world = {};
  if (!g_is_initialised_here) return 0;
  g_is_initialised_here = false;
  const int code = MPI_Finalize();
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "MPI_Finalize", code);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_BACKEND_ABI,
                                    .name = TUTTI_BACKEND_NAME,
                                    .starter = TUTTI_STARTER_MPIRUN,
                                    .start_command = backend_start_command,
                                    .open = backend_open,
                                    .describe = backend_describe,
                                    .split = backend_split,
                                    .free_group = backend_free_group,
                                    .supports = backend_supports,
                                    .prepare = backend_prepare,
                                    .run = backend_call,
                                    .post = backend_call,
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
