// SPDX-License-Identifier: Apache-2.0
// The MPI backend: one source for every MPI, compiled once per library (scripts/build-backend). A prepared call holds
// the arguments of one MPI function; running it is that function and nothing else. It knows tutti by backend.h alone.
//
// Compiled with TUTTI_BACKEND_NAME, the name under which this MPI is known.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <climits>
#include <mpi.h>

#include "harness/backends/backend.h"
#include "harness/backends/mpi/library.h"

namespace {

/// The state of the process: there is one MPI in it.
struct World {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 1;
  bool is_initialised_here = false;
};
World g_world;

struct Prepared;
using Function = int (*)(const Prepared&);

/// The arguments of one MPI call.
struct Prepared {
  Function function = nullptr;
  const void* send = nullptr;
  void* receive = nullptr;
  int count = 0;
  int root = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  // v forms
  std::vector<int> send_counts, send_displacements, receive_counts, receive_displacements;
};

int run_reduce(const Prepared& p) {
  return MPI_Reduce(p.send, p.receive, p.count, p.type, p.op, p.root, g_world.communicator);
}
int run_all_reduce(const Prepared& p) {
  return MPI_Allreduce(p.send, p.receive, p.count, p.type, p.op, g_world.communicator);
}
int run_broadcast(const Prepared& p) { return MPI_Bcast(p.receive, p.count, p.type, p.root, g_world.communicator); }
int run_gather(const Prepared& p) {
  return MPI_Gather(p.send, p.count, p.type, p.receive, p.count, p.type, p.root, g_world.communicator);
}
int run_all_gather(const Prepared& p) {
  return MPI_Allgather(p.send, p.count, p.type, p.receive, p.count, p.type, g_world.communicator);
}
int run_scatter(const Prepared& p) {
  return MPI_Scatter(p.send, p.count, p.type, p.receive, p.count, p.type, p.root, g_world.communicator);
}
int run_reduce_scatter(const Prepared& p) {
  return MPI_Reduce_scatter_block(p.send, p.receive, p.count, p.type, p.op, g_world.communicator);
}
int run_all_to_all(const Prepared& p) {
  return MPI_Alltoall(p.send, p.count, p.type, p.receive, p.count, p.type, g_world.communicator);
}
int run_sendrecv(const Prepared& p) {
  const int next = (g_world.rank + 1) % g_world.ranks;
  const int previous = (g_world.rank + g_world.ranks - 1) % g_world.ranks;
  return MPI_Sendrecv(p.send, p.count, p.type, next, 0, p.receive, p.count, p.type, previous, 0, g_world.communicator,
                      MPI_STATUS_IGNORE);
}
int run_sendrecv_in_place(const Prepared& p) {
  const int next = (g_world.rank + 1) % g_world.ranks;
  const int previous = (g_world.rank + g_world.ranks - 1) % g_world.ranks;
  return MPI_Sendrecv_replace(p.receive, p.count, p.type, next, 0, previous, 0, g_world.communicator,
                              MPI_STATUS_IGNORE);
}
/// Even ranks with the next one; the last of an odd number with itself, so that its input is copied too.
int run_pingpong(const Prepared& p) {
  const int rank = g_world.rank;
  const MPI_Comm all = g_world.communicator;
  if (rank % 2 == 0 && rank + 1 == g_world.ranks) {
    if (p.send == p.receive) return MPI_SUCCESS;
    return MPI_Sendrecv(p.send, p.count, p.type, rank, 0, p.receive, p.count, p.type, rank, 0, all, MPI_STATUS_IGNORE);
  }
  if (rank % 2 == 0) {
    const int code = MPI_Send(p.send, p.count, p.type, rank + 1, 0, all);
    return code != MPI_SUCCESS ? code : MPI_Recv(p.receive, p.count, p.type, rank + 1, 0, all, MPI_STATUS_IGNORE);
  }
  const int code = MPI_Recv(p.receive, p.count, p.type, rank - 1, 0, all, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS ? code : MPI_Send(p.receive, p.count, p.type, rank - 1, 0, all);
}
int run_gather_v(const Prepared& p) {
  return MPI_Gatherv(p.send, p.count, p.type, p.receive, p.receive_counts.data(), p.receive_displacements.data(),
                     p.type, p.root, g_world.communicator);
}
int run_all_gather_v(const Prepared& p) {
  return MPI_Allgatherv(p.send, p.count, p.type, p.receive, p.receive_counts.data(), p.receive_displacements.data(),
                        p.type, g_world.communicator);
}
int run_scatter_v(const Prepared& p) {
  return MPI_Scatterv(p.send, p.send_counts.data(), p.send_displacements.data(), p.type, p.receive, p.count, p.type,
                      p.root, g_world.communicator);
}
int run_reduce_scatter_v(const Prepared& p) {
  return MPI_Reduce_scatter(p.send, p.receive, p.send_counts.data(), p.type, p.op, g_world.communicator);
}
int run_all_to_all_v(const Prepared& p) {
  return MPI_Alltoallv(p.send, p.send_counts.data(), p.send_displacements.data(), p.type, p.receive,
                       p.receive_counts.data(), p.receive_displacements.data(), p.type, g_world.communicator);
}
int run_barrier(const Prepared& /*p*/) { return MPI_Barrier(g_world.communicator); }

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

/// A row per dtype. What MPI has no type for has no arithmetic there, and is moved as bytes.
struct Type {
  std::string_view name;
  std::uint64_t bytes;
  MPI_Datatype type;
};
const Type kTypes[] = {{"int8", 1, MPI_INT8_T},     {"uint8", 1, MPI_UINT8_T}, {"int32", 4, MPI_INT32_T},
                       {"uint32", 4, MPI_UINT32_T}, {"int64", 8, MPI_INT64_T}, {"uint64", 8, MPI_UINT64_T},
                       {"half", 2, MPI_BYTE},       {"float", 4, MPI_FLOAT},   {"double", 8, MPI_DOUBLE},
                       {"bfloat16", 2, MPI_BYTE},   {"f8e4m3", 1, MPI_BYTE},   {"f8e5m2", 1, MPI_BYTE}};
constexpr const char* kTypeNames = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2";

/// A row per op that MPI has.
struct Operator {
  std::string_view name;
  MPI_Op op;
};
const Operator kOperators[] = {{"sum", MPI_SUM},   {"prod", MPI_PROD}, {"min", MPI_MIN},  {"max", MPI_MAX},
                               {"band", MPI_BAND}, {"bor", MPI_BOR},   {"bxor", MPI_BXOR}};
constexpr const char* kOperatorNames = "sum prod min max band bor bxor";

std::string unknown(const char* kind, std::string_view name, const char* known) {
  return std::string(kind) + " '" + std::string(name) + "' is not known here (one of: " + known + ")";
}

/// The translators fill `prepared`; they return why MPI cannot do it, or nothing. None of them calls MPI: supports is
/// asked before MPI_Init.
std::string translate_type(const TuttiBackendCall& call, Prepared& prepared) {
  for (const Type& row : kTypes) {
    if (row.name != call.dtype) continue;
    prepared.type = row.type;
    if (row.bytes == call.element_bytes) return {};
    return std::string(row.name) + " has " + std::to_string(row.bytes) + " bytes here, not " +
           std::to_string(call.element_bytes);
  }
  return unknown("dtype", call.dtype, kTypeNames);
}

std::string translate_op(const TuttiBackendCall& call, Prepared& prepared) {
  const std::string_view op = call.op;
  if (op == "avg" || op == "premul_sum") return "MPI has no " + std::string(op);
  for (const Operator& row : kOperators) {
    if (row.name == op) prepared.op = row.op;
  }
  if (prepared.op == MPI_OP_NULL) return unknown("op", op, kOperatorNames);
  for (const Type& row : kTypes) {
    if (row.name != call.dtype) continue;
    if (row.type == MPI_BYTE) return "MPI has no arithmetic for " + std::string(row.name);
    const bool is_float = row.type == MPI_FLOAT || row.type == MPI_DOUBLE;
    // Its vectorised sums of 8-bit integers (component op/avx) end at the largest value. MPI does not say what they do.
    if (op == "sum" && row.bytes == 1 && tutti::backend_mpi::library_identity().name == "Open MPI") {
      return "Open MPI saturates sums of " + std::string(row.name) + ", which wrap here";
    }
    if (is_float && op.starts_with('b')) return "MPI has no " + std::string(op) + " of " + std::string(row.name);
  }
  return {};
}

/// Who passes MPI_IN_PLACE, and in place of what; with `same_buffer` nobody does.
enum class InPlace { send, send_at_root, receive_at_root, one_buffer, same_buffer, refused };

/// A row per collective but for barrier.
struct Row {
  std::string_view name;
  Function function;
  bool reduces;
  InPlace in_place;
};
const Row kRows[] = {{"broadcast", run_broadcast, false, InPlace::one_buffer},
                     {"reduce", run_reduce, true, InPlace::send_at_root},
                     {"all_reduce", run_all_reduce, true, InPlace::send},
                     {"gather", run_gather, false, InPlace::send_at_root},
                     {"all_gather", run_all_gather, false, InPlace::send},
                     {"scatter", run_scatter, false, InPlace::receive_at_root},
                     {"reduce_scatter", run_reduce_scatter, true, InPlace::refused},
                     {"all_to_all", run_all_to_all, false, InPlace::send},
                     {"sendrecv", run_sendrecv, false, InPlace::same_buffer},
                     {"pingpong", run_pingpong, false, InPlace::same_buffer},
                     {"gather_v", run_gather_v, false, InPlace::send_at_root},
                     {"all_gather_v", run_all_gather_v, false, InPlace::send},
                     {"scatter_v", run_scatter_v, false, InPlace::receive_at_root},
                     {"reduce_scatter_v", run_reduce_scatter_v, true, InPlace::refused},
                     {"all_to_all_v", run_all_to_all_v, false, InPlace::send}};
constexpr const char* kCollectiveNames =
    "broadcast reduce all_reduce gather all_gather scatter reduce_scatter all_to_all sendrecv pingpong "
    "barrier gather_v all_gather_v scatter_v reduce_scatter_v all_to_all_v";

std::string translate_buffers(const TuttiBackendCall& call, InPlace in_place, Prepared& prepared) {
  prepared.send = call.send;
  prepared.receive = call.recv;
  if (call.in_place == 0) {
    return in_place == InPlace::one_buffer ? "MPI_Bcast has one buffer: there is no broadcast out of place" : "";
  }
  const bool is_root = g_world.rank == call.root;
  if (in_place == InPlace::send || (in_place == InPlace::send_at_root && is_root)) prepared.send = MPI_IN_PLACE;
  if (in_place == InPlace::receive_at_root && is_root) prepared.receive = MPI_IN_PLACE;
  if (in_place != InPlace::refused) return {};
  const char* const function = call.blocks > 0 ? "MPI_Reduce_scatter" : "MPI_Reduce_scatter_block";
  return std::string(function) + " in place leaves its result in block 0 of the buffer, not in the rank's own";
}

std::string translate_function(const TuttiBackendCall& call, Prepared& prepared) {
  for (const Row& row : kRows) {
    if (row.name != call.collective) continue;
    prepared.function = row.function;
    if (std::string reason = translate_buffers(call, row.in_place, prepared); !reason.empty()) return reason;
    // One buffer for both is a function of its own, as it is not allowed to overlap in the other.
    if (row.function == run_sendrecv && call.in_place != 0) prepared.function = run_sendrecv_in_place;
    return row.reduces ? translate_op(call, prepared) : "";
  }
  return unknown("collective", call.collective, kCollectiveNames);
}

/// MPI's counts and displacements are ints, of elements of its type: `of_each` for each of ours.
std::string translate_array(const char* what, const int64_t* values, int32_t blocks, int of_each,
                            std::vector<int>& array) {
  const int most = INT_MAX / of_each;
  for (int32_t block = 0; values != nullptr && block < blocks; ++block) {
    if (values[block] < 0 || values[block] > most) {
      return std::string(what) + " " + std::to_string(values[block]) + " of block " + std::to_string(block) +
             " does not fit one MPI call: it takes 0 to " + std::to_string(most);
    }
    array.push_back(static_cast<int>(values[block]) * of_each);
  }
  return {};
}

/// MPI_Reduce_scatter takes no displacements.
std::string check_dense(const TuttiBackendCall& call) {
  int64_t next = 0;
  for (int32_t block = 0; block < call.blocks; ++block) {
    if (call.send_counts[block] > 0 && call.send_displacements[block] != next) {
      return "MPI_Reduce_scatter has no displacements: each block follows the one before it";
    }
    next += call.send_counts[block];
  }
  return {};
}

std::string translate_blocks(const TuttiBackendCall& call, int of_each, Prepared& prepared) {
  if (std::string_view(call.collective) == "reduce_scatter_v") {
    if (std::string reason = check_dense(call); !reason.empty()) return reason;
  }
  struct Array {
    const char* what;
    const int64_t* values;
    std::vector<int>& target;
  };
  for (const Array& array : {Array{"count", call.send_counts, prepared.send_counts},
                             Array{"displacement", call.send_displacements, prepared.send_displacements},
                             Array{"count", call.recv_counts, prepared.receive_counts},
                             Array{"displacement", call.recv_displacements, prepared.receive_displacements}}) {
    std::string reason = translate_array(array.what, array.values, call.blocks, of_each, array.target);
    if (!reason.empty()) return reason;
  }
  return {};
}

std::string translate(const TuttiBackendCall& call, Prepared& prepared) {
  if (std::string_view(call.collective) == "barrier") {
    prepared.function = run_barrier;
    return {};
  }
  if (std::string reason = translate_function(call, prepared); !reason.empty()) return reason;
  if (std::string reason = translate_type(call, prepared); !reason.empty()) return reason;
  // Elements of MPI's type for each of ours.
  const auto of_each = prepared.type == MPI_BYTE ? static_cast<int>(call.element_bytes) : 1;
  const int most = INT_MAX / of_each;
  if (call.count < 0 || call.count > most) {
    return "count " + std::to_string(call.count) + " does not fit one MPI call: it takes 0 to " + std::to_string(most);
  }
  prepared.count = static_cast<int>(call.count) * of_each;
  prepared.root = call.root;
  return translate_blocks(call, of_each, prepared);
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
    g_world.is_initialised_here = true;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  g_world.communicator = MPI_COMM_WORLD;
  return 0;
}

int backend_open(const TuttiBackendWorld* world, TuttiBackendMessage* message) {
  if (const int failed = join_world(message); failed != 0) return failed;
  int ranks = 0;
  MPI_Comm_size(g_world.communicator, &ranks);
  g_world.ranks = ranks;
  MPI_Comm_rank(g_world.communicator, &g_world.rank);
  const int rank = g_world.rank;
  if (ranks == world->ranks && rank == world->rank) return 0;
  const std::string hint =
      ranks == 1 && world->ranks > 1 ? ": the ranks were not started by an mpirun of this MPI" : "";
  return fail(message, tutti::backend_mpi::library_identity().name + " sees rank " + std::to_string(rank) + " of " +
                           std::to_string(ranks) + ", the launcher started rank " + std::to_string(world->rank) +
                           " of " + std::to_string(world->ranks) + hint);
}

int backend_describe(TuttiBackendMessage* text) {
  const bool is_open = g_world.communicator != MPI_COMM_NULL;
  const std::string json = tutti::backend_mpi::to_json(is_open ? tutti::backend_mpi::library_in_use()
                                                               : tutti::backend_mpi::library_identity());
  std::snprintf(text->text, text->size, "%s", json.c_str());
  return json.size() < text->size ? 0 : 1;
}

int backend_supports(const TuttiBackendCall* call, TuttiBackendMessage* reason) {
  Prepared ignored;
  const std::string refusal = translate(*call, ignored);
  return refusal.empty() ? 0 : fail(reason, refusal);
}

int backend_prepare(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message) {
  Prepared prepared;
  if (const std::string refusal = translate(*call, prepared); !refusal.empty()) return fail(message, refusal);
  *handle = new Prepared(prepared);
  return 0;
}

int backend_run(void* handle, TuttiBackendMessage* message) {
  const auto& prepared = *static_cast<const Prepared*>(handle);
  const int code = prepared.function(prepared);
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "the MPI call", code);
}

void backend_release(void* handle) { delete static_cast<Prepared*>(handle); }

int backend_close(TuttiBackendMessage* message) {
  g_world.communicator = MPI_COMM_NULL;
  if (!g_world.is_initialised_here) return 0;
  g_world.is_initialised_here = false;
  const int code = MPI_Finalize();
  return code == MPI_SUCCESS ? 0 : fail_mpi(message, "MPI_Finalize", code);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiBackend* tutti_backend(void) {
  static const TuttiBackend backend{.abi = TUTTI_BACKEND_ABI,
                                    .name = TUTTI_BACKEND_NAME,
                                    .open = backend_open,
                                    .describe = backend_describe,
                                    .supports = backend_supports,
                                    .prepare = backend_prepare,
                                    .run = backend_run,
                                    .release = backend_release,
                                    .close = backend_close};
  return &backend;
}
