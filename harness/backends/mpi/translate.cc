// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/mpi/translate.h"

#include <cstdint>
#include <string_view>

#include <climits>

#include "harness/backends/mpi/library.h"

// Mistakes of MPICH that are refused by name, and the last version that a small program has shown them of. None is
// Intel's, whose numbers of versions are the same.
#if defined(MPICH_NUMVERSION) && !defined(I_MPI_NUMVERSION)
#if MPICH_NUMVERSION < 40100000
#define TUTTI_MPICH_FORGETS_DISPLACEMENT  // 4.0.3: MPI_Allgatherv and MPI_Iallgatherv on one rank
#define TUTTI_MPICH_CRASHES_IN_PLACE      // 4.0.3: MPI_Reduce of 100,000 bytes
#endif
#if MPICH_NUMVERSION < 40003000
#define TUTTI_MPICH_COMPARES_AS_SIGNED  // 4.0.2: MPI_MAX and MPI_MIN of unsigned integers
#endif
#endif

namespace tutti::backend_mpi {
namespace {

/// A row per dtype. What MPI has no type for has no arithmetic there, and is moved as bytes.
struct Type {
  std::string_view name;
  std::uint64_t bytes;
  MPI_Datatype type;
};
const Type kTypes[] = {{"int8", 1, MPI_INT8_T},     {"uint8", 1, MPI_UINT8_T},   {"int32", 4, MPI_INT32_T},
                       {"uint32", 4, MPI_UINT32_T}, {"int64", 8, MPI_INT64_T},   {"uint64", 8, MPI_UINT64_T},
                       {"half", 2, MPI_BYTE},       {"float", 4, MPI_FLOAT},     {"double", 8, MPI_DOUBLE},
                       {"bfloat16", 2, MPI_BYTE},   {"f8e4m3", 1, MPI_BYTE},     {"f8e5m2", 1, MPI_BYTE},
                       {"int16", 2, MPI_INT16_T},   {"uint16", 2, MPI_UINT16_T}, {"bool", 1, MPI_C_BOOL}};
constexpr const char* kTypeNames =
    "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 int16 uint16 bool";

/// A row per op that MPI has.
struct Operator {
  std::string_view name;
  MPI_Op op;
};
const Operator kOperators[] = {{"sum", MPI_SUM},   {"prod", MPI_PROD}, {"min", MPI_MIN},  {"max", MPI_MAX},
                               {"band", MPI_BAND}, {"bor", MPI_BOR},   {"bxor", MPI_BXOR}};
constexpr const char* kOperatorNames = "sum prod min max band bor bxor";

/// MPI has logical operators for truth, and no others.
MPI_Op logical_operator(std::string_view op) {
  if (op == "sum" || op == "max" || op == "bor") return MPI_LOR;
  return op == "min" || op == "band" ? MPI_LAND : MPI_OP_NULL;
}

std::string unknown(const char* kind, std::string_view name, const std::string& known) {
  return std::string(kind) + " '" + std::string(name) + "' is not known here (one of: " + known + ")";
}

// Each translator fills a part of `prepared` and returns why MPI cannot do it, or nothing.

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
  if (std::string_view(call.dtype) == "bool") {
    prepared.op = logical_operator(op);
    return prepared.op == MPI_OP_NULL ? "there is no " + std::string(op) + " of bool" : "";
  }
  if (prepared.op == MPI_OP_NULL) return unknown("op", op, kOperatorNames);
  for (const Type& row : kTypes) {
    if (row.name != call.dtype) continue;
    if (row.type == MPI_BYTE) return "MPI has no arithmetic for " + std::string(row.name);
    const bool is_float = row.type == MPI_FLOAT || row.type == MPI_DOUBLE;
    // Its vectorised sums of 8 and 16 bits (component op/avx) end at the largest value. MPI does not say what they do.
    if (op == "sum" && row.bytes <= 2 && library_identity().name == "Open MPI") {
      return "Open MPI saturates sums of " + std::string(row.name) + ", which wrap here";
    }
#ifdef TUTTI_MPICH_COMPARES_AS_SIGNED
    const bool is_unsigned = row.name.starts_with('u');
    if (is_unsigned && (op == "min" || op == "max")) {
      return "this MPI compares " + std::string(row.name) + " as if it had a sign";
    }
#endif
    if (is_float && op.starts_with('b')) return "MPI has no " + std::string(op) + " of " + std::string(row.name);
  }
  return {};
}

std::string translate_buffers(const TuttiBackendCall& call, InPlace in_place, Prepared& prepared) {
  prepared.send = call.send;
  prepared.receive = call.recv;
  if (call.in_place == 0) {
    return in_place == InPlace::one_buffer ? "MPI_Bcast has one buffer: there is no broadcast out of place" : "";
  }
#ifdef TUTTI_MPICH_CRASHES_IN_PLACE
  if (std::string_view(call.collective) == "reduce" && call.root != 0) {
    return "this MPI crashes in MPI_Reduce in place of a long message at another root than rank 0";
  }
#endif
  const bool is_root = prepared.group.rank == call.root;
  if (in_place == InPlace::send || (in_place == InPlace::send_at_root && is_root)) prepared.send = MPI_IN_PLACE;
  if (in_place == InPlace::receive_at_root && is_root) prepared.receive = MPI_IN_PLACE;
  if (in_place == InPlace::overwritten) {
    return "MPI has no " + std::string(call.collective) +
           " in place: messages would arrive in what is still to be sent";
  }
  if (in_place != InPlace::refused) return {};
  const char* const function = call.blocks > 0 ? "MPI_Reduce_scatter" : "MPI_Reduce_scatter_block";
  return std::string(function) + " in place leaves its result in block 0 of the buffer, not in the rank's own";
}

/// With which ranks, and how many messages.
std::string translate_pairing(const TuttiBackendCall& call, Prepared& prepared) {
  prepared.is_one_pair = call.first_of_pair != call.second_of_pair;
  const int rank = prepared.group.rank;
  if (!prepared.is_one_pair) {
    prepared.partner = partner_in(call.collective, prepared.group);
  } else if (rank == call.first_of_pair || rank == call.second_of_pair) {
    prepared.partner = rank == call.first_of_pair ? call.second_of_pair : call.first_of_pair;
  }
  if (call.window < 0 || call.window > INT_MAX / 2) {
    return "a window of " + std::to_string(call.window) + " messages does not fit one MPI call: it takes 0 to " +
           std::to_string(INT_MAX / 2);
  }
  prepared.window = call.window;
  prepared.message_bytes = static_cast<std::size_t>(call.count) * call.element_bytes;
  prepared.window_requests.assign(2 * static_cast<std::size_t>(call.window), MPI_REQUEST_NULL);
  return {};
}

std::string translate_function(const TuttiBackendCall& call, Prepared& prepared) {
  const std::string_view collective = call.collective;
  const Row* const row = find_row(collective, call.in_place != 0);
  if (row == nullptr) return unknown("collective", collective, row_names());
  prepared.function = call.asynchronous != 0 ? row->nonblocking : row->blocking;
  if (prepared.function == nullptr) {
    return "this MPI has no sound nonblocking " + std::string(collective) + (call.in_place != 0 ? " in place" : "");
  }
  if (std::string reason = translate_buffers(call, row->in_place, prepared); !reason.empty()) return reason;
  return row->reduces ? translate_op(call, prepared) : "";
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
#ifdef TUTTI_MPICH_FORGETS_DISPLACEMENT
  const bool is_alone = prepared.group.ranks == 1 && std::string_view(call.collective) == "all_gather_v";
  if (is_alone && call.recv_displacements[0] != 0) {
    return "this MPI's MPI_Allgatherv forgets the displacement where there is one rank";
  }
#endif
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

}  // namespace

std::string translate(const TuttiBackendCall& call, Prepared& prepared) {
  if (call.memory != TUTTI_MEMORY_HOST) return "this MPI is called with buffers in host memory only";
  if (std::string reason = translate_function(call, prepared); !reason.empty()) return reason;
  if (std::string_view(call.collective) == "barrier") return {};
  if (std::string reason = translate_type(call, prepared); !reason.empty()) return reason;
  // Elements of MPI's type for each of ours.
  const auto of_each = prepared.type == MPI_BYTE ? static_cast<int>(call.element_bytes) : 1;
  const int most = INT_MAX / of_each;
  if (call.count < 0 || call.count > most) {
    return "count " + std::to_string(call.count) + " does not fit one MPI call: it takes 0 to " + std::to_string(most);
  }
  prepared.count = static_cast<int>(call.count) * of_each;
  prepared.root = call.root;
  if (std::string reason = translate_pairing(call, prepared); !reason.empty()) return reason;
  return translate_blocks(call, of_each, prepared);
}

}  // namespace tutti::backend_mpi
