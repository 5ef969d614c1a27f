// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/translate.h"

#include <algorithm>
#include <cstdint>
#include <gloo/math.h>
#include <limits>
#include <string_view>

#include "harness/backends/gloo/pairs.h"

namespace tutti::backend_gloo {
namespace {

using Reduce = decltype(Arguments::reduce);

/// Gloo's own arithmetic: templates of its headers.
struct Arithmetic {
  Reduce sum = nullptr, prod = nullptr, min = nullptr, max = nullptr;
};
template <class T>
constexpr Arithmetic kArithmetic{gloo::sum<T>, gloo::product<T>, gloo::min<T>, gloo::max<T>};
constexpr Arithmetic kNoArithmetic;

/// A row per dtype.
struct Type {
  std::string_view name;
  std::uint64_t bytes;
  const Arithmetic& arithmetic;
};
constexpr Type kTypes[] = {{"int8", 1, kArithmetic<std::int8_t>},
                           {"uint8", 1, kArithmetic<std::uint8_t>},
                           {"int32", 4, kArithmetic<std::int32_t>},
                           {"uint32", 4, kArithmetic<std::uint32_t>},
                           {"int64", 8, kArithmetic<std::int64_t>},
                           {"uint64", 8, kArithmetic<std::uint64_t>},
                           {"half", 2, kArithmetic<gloo::float16>},
                           {"float", 4, kArithmetic<float>},
                           {"double", 8, kArithmetic<double>},
                           {"bfloat16", 2, kNoArithmetic},
                           {"f8e4m3", 1, kNoArithmetic},
                           {"f8e5m2", 1, kNoArithmetic},
                           {"int16", 2, kNoArithmetic},
                           {"uint16", 2, kNoArithmetic},
                           {"bool", 1, kNoArithmetic}};
constexpr const char* kTypeNames =
    "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 int16 uint16 bool";

/// A row per op that Gloo has.
struct Operator {
  std::string_view name;
  Reduce Arithmetic::*function;
};
constexpr Operator kOperators[] = {
    {"sum", &Arithmetic::sum}, {"prod", &Arithmetic::prod}, {"min", &Arithmetic::min}, {"max", &Arithmetic::max}};
constexpr const char* kOperatorNames = "sum prod min max";
constexpr std::string_view kMissingOperators[] = {"avg", "premul_sum", "band", "bor", "bxor"};

/// Collectives that others have.
constexpr std::string_view kMissing[] = {"reduce_scatter", "scan", "exscan", "scatter_v", "reduce_scatter_v"};

std::string unknown(const char* kind, std::string_view name, const std::string& known) {
  return std::string(kind) + " '" + std::string(name) + "' is not known here (one of: " + known + ")";
}

// Each translator fills a part of `arguments` and returns why Gloo cannot do it, or nothing.

std::string translate_type(const TuttiBackendCall& call, Arguments& arguments, const Arithmetic*& arithmetic) {
  for (const Type& row : kTypes) {
    if (row.name != call.dtype) continue;
    arithmetic = &row.arithmetic;
    arguments.element_bytes = row.bytes;
    if (row.bytes == call.element_bytes) return {};
    return std::string(row.name) + " has " + std::to_string(row.bytes) + " bytes here, not " +
           std::to_string(call.element_bytes);
  }
  return unknown("dtype", call.dtype, kTypeNames);
}

std::string translate_op(const TuttiBackendCall& call, const Arithmetic& arithmetic, Arguments& arguments) {
  const std::string_view op = call.op;
  if (std::ranges::find(kMissingOperators, op) != std::end(kMissingOperators)) return "Gloo has no " + std::string(op);
  const auto* const row = std::ranges::find(kOperators, op, &Operator::name);
  if (row == std::end(kOperators)) return unknown("op", op, kOperatorNames);
  arguments.reduce = arithmetic.*row->function;
  return arguments.reduce == nullptr ? "Gloo has no arithmetic for " + std::string(call.dtype) : "";
}

std::string translate_count(const TuttiBackendCall& call, Arguments& arguments) {
  const auto most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(call.element_bytes) /
                    std::max({arguments.seat.ranks, call.window, 1});
  if (call.count < 0 || call.count > most) {
    return "count " + std::to_string(call.count) + " does not fit one call of Gloo: it takes 0 to " +
           std::to_string(most);
  }
  if (call.count == 0 && std::string_view(call.collective) == "all_gather") {
    return "Gloo's allgather divides by the size of its output: it takes 1 element or more";
  }
  arguments.count = static_cast<std::size_t>(call.count);
  return {};
}

/// With which ranks, and how many messages.
std::string translate_pairing(const TuttiBackendCall& call, Arguments& arguments) {
  if (call.window < 0) {
    return "a window of " + std::to_string(call.window) + " messages: it takes 0 or more";
  }
  arguments.window = call.window;
  arguments.is_one_pair = call.first_of_pair != call.second_of_pair;
  const int rank = arguments.seat.rank;
  if (!arguments.is_one_pair) {
    arguments.partner = partner_in(call.collective, arguments.seat);
  } else if (rank == call.first_of_pair || rank == call.second_of_pair) {
    arguments.partner = rank == call.first_of_pair ? call.second_of_pair : call.first_of_pair;
  }
  return {};
}

/// Gloo takes the lengths of blocks, but not where they lie.
std::string translate_blocks(const TuttiBackendCall& call, const int64_t* counts, const int64_t* displacements,
                             std::vector<std::size_t>& block_bytes) {
  int64_t next = 0;
  for (int32_t block = 0; counts != nullptr && block < call.blocks; ++block) {
    if (counts[block] < 0) {
      return "count " + std::to_string(counts[block]) + " of block " + std::to_string(block) + ": it takes 0 or more";
    }
    if (counts[block] > 0 && displacements[block] != next) {
      return "Gloo has no displacements: each block follows the one before it";
    }
    next += counts[block];
    block_bytes.push_back(static_cast<std::size_t>(counts[block]) * call.element_bytes);
  }
  return {};
}

}  // namespace

std::string translate(const TuttiBackendCall& call, Arguments& arguments) {
  if (call.memory != TUTTI_MEMORY_HOST) return "Gloo is called with buffers in host memory only";
  const std::string_view collective = call.collective;
  if (std::ranges::find(kMissing, collective) != std::end(kMissing)) return "Gloo has no " + std::string(collective);
  if (collective == "gather_v") return "Gloo is packaged without the header of its gatherv";
  const Row* const row = find_row(collective);
  if (row == nullptr) return unknown("collective", collective, row_names());
  if (collective == "barrier") return {};
  arguments.send = static_cast<std::byte*>(const_cast<void*>(call.send));  // Gloo does not write there
  arguments.receive = static_cast<std::byte*>(call.recv);
  arguments.root = call.root;
  arguments.is_in_place = call.in_place != 0;
  if (arguments.is_in_place && row->overwrites) {
    return "Gloo has no " + std::string(collective) + " in place: messages would arrive in what is still to be sent";
  }
  const Arithmetic* arithmetic = nullptr;
  if (std::string reason = translate_type(call, arguments, arithmetic); !reason.empty()) return reason;
  if (row->reduces) {
    if (std::string reason = translate_op(call, *arithmetic, arguments); !reason.empty()) return reason;
  }
  if (std::string reason = translate_count(call, arguments); !reason.empty()) return reason;
  if (std::string reason = translate_pairing(call, arguments); !reason.empty()) return reason;
  std::string reason = translate_blocks(call, call.send_counts, call.send_displacements, arguments.send_bytes);
  if (!reason.empty()) return reason;
  return translate_blocks(call, call.recv_counts, call.recv_displacements, arguments.receive_bytes);
}

}  // namespace tutti::backend_gloo
