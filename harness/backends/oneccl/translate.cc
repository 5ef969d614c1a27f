// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/oneccl/translate.h"

#include <algorithm>
#include <limits>
#include <span>

namespace tutti::backend_oneccl {
namespace {

/// A row per dtype. What oneCCL has no arithmetic for is moved as bytes.
struct TypeRow {
  std::string_view name;
  std::uint64_t bytes;
  ccl::datatype type;
  bool has_arithmetic = true;
};
constexpr TypeRow kTypes[] = {{"int8", 1, ccl::datatype::int8},           {"uint8", 1, ccl::datatype::uint8},
                              {"int16", 2, ccl::datatype::int16},         {"uint16", 2, ccl::datatype::uint16},
                              {"int32", 4, ccl::datatype::int32},         {"uint32", 4, ccl::datatype::uint32},
                              {"int64", 8, ccl::datatype::int64},         {"uint64", 8, ccl::datatype::uint64},
                              {"half", 2, ccl::datatype::float16},        {"float", 4, ccl::datatype::float32},
                              {"double", 8, ccl::datatype::float64},      {"bfloat16", 2, ccl::datatype::bfloat16},
                              {"f8e4m3", 1, ccl::datatype::uint8, false}, {"f8e5m2", 1, ccl::datatype::uint8, false},
                              {"bool", 1, ccl::datatype::uint8, false}};
constexpr const char* kTypeNames =
    "int8 uint8 int16 uint16 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 bool";

/// A row per op that oneCCL has on CPUs.
struct OpRow {
  std::string_view name;
  ccl::reduction op;
};
constexpr OpRow kOps[] = {{"sum", ccl::reduction::sum},
                          {"prod", ccl::reduction::prod},
                          {"min", ccl::reduction::min},
                          {"max", ccl::reduction::max}};
constexpr const char* kOpNames = "sum prod min max";
constexpr std::string_view kMissingOps[] = {"avg", "premul_sum", "band", "bor", "bxor"};

/// Collectives that others have.
constexpr std::string_view kMissingCollectives[] = {"scan", "exscan", "reduce_scatter_v"};

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::string unknown(const char* kind, std::string_view name, const std::string& known) {
  return std::string(kind) + " '" + std::string(name) + "' is not known here (one of: " + known + ")";
}

// Each translator fills a part of `prepared` and returns why oneCCL cannot do it, or nothing.

std::string translate_type(const TuttiBackendCall& call, bool reduces, Prepared& prepared) {
  const auto* const row = std::ranges::find(kTypes, std::string_view(call.dtype), &TypeRow::name);
  if (row == std::end(kTypes)) return unknown("dtype", call.dtype, kTypeNames);
  if (reduces && !row->has_arithmetic) return "oneCCL has no arithmetic for " + std::string(call.dtype);
  prepared.type = row->type;
  prepared.element_bytes = row->bytes;
  if (row->bytes == call.element_bytes) return {};
  return std::string(row->name) + " has " + std::to_string(row->bytes) + " bytes here, not " +
         std::to_string(call.element_bytes);
}

std::string translate_op(const TuttiBackendCall& call, Prepared& prepared) {
  if (is_among(call.op, kMissingOps)) return "oneCCL has no " + std::string(call.op) + " on CPUs";
  const auto* const row = std::ranges::find(kOps, std::string_view(call.op), &OpRow::name);
  if (row == std::end(kOps)) return unknown("op", call.op, kOpNames);
  prepared.op = row->op;
  return {};
}

std::string translate_count(const TuttiBackendCall& call, Prepared& prepared) {
  const int ranks = prepared.group == nullptr ? 1 : prepared.group->ranks();
  const auto most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(call.element_bytes) /
                    std::max({ranks, call.window, 1});
  if (call.count < 0 || call.count > most) {
    return "count " + std::to_string(call.count) + " does not fit one call of oneCCL: it takes 0 to " +
           std::to_string(most);
  }
  prepared.count = static_cast<std::size_t>(call.count);
  return {};
}

/// With which ranks, and how many messages.
std::string translate_pairing(const TuttiBackendCall& call, Prepared& prepared) {
  if (call.window < 0) return "a window of " + std::to_string(call.window) + " messages: it takes 0 or more";
  prepared.window = call.window;
  prepared.is_one_pair = call.first_of_pair != call.second_of_pair;
  if (prepared.group == nullptr) return {};
  const int rank = prepared.group->rank();
  if (!prepared.is_one_pair) {
    prepared.partner = partner_in(call.collective, rank, prepared.group->ranks());
  } else if (rank == call.first_of_pair || rank == call.second_of_pair) {
    prepared.partner = rank == call.first_of_pair ? call.second_of_pair : call.first_of_pair;
  }
  return {};
}

/// oneCCL's own v forms take the lengths of blocks, but not where they lie.
std::string translate_blocks(const TuttiBackendCall& call, const int64_t* counts, const int64_t* displacements,
                             std::vector<Block>& blocks, std::vector<std::size_t>& lengths) {
  const bool is_by_messages =
      call.collective == std::string_view("gather_v") || call.collective == std::string_view("scatter_v");
  int64_t next = 0;
  for (int32_t i = 0; counts != nullptr && i < call.blocks; ++i) {
    if (counts[i] < 0 || displacements[i] < 0) {
      return "block " + std::to_string(i) + " has " + std::to_string(counts[i]) + " elements from element " +
             std::to_string(displacements[i]) + " on: both take 0 or more";
    }
    if (!is_by_messages && counts[i] > 0 && displacements[i] != next) {
      return "oneCCL has no displacements: each block follows the one before it";
    }
    next += counts[i];
    lengths.push_back(static_cast<std::size_t>(counts[i]));
    blocks.push_back(
        {.count = lengths.back(), .offset_bytes = static_cast<std::size_t>(displacements[i]) * call.element_bytes});
  }
  return {};
}

}  // namespace

std::string translate(const TuttiBackendCall& call, Prepared& prepared) {
  if (call.memory != TUTTI_MEMORY_HOST) return "oneCCL is called with buffers in host memory only";
  const std::string_view collective = call.collective;
  if (is_among(collective, kMissingCollectives)) return "oneCCL has no " + std::string(collective);
  const Row* const row = find_row(collective);
  if (row == nullptr) return unknown("collective", collective, row_names());
  if (call.in_place != 0 && row->overwrites) {
    return "oneCCL has no " + std::string(collective) + " in place: messages would arrive in what is still to be sent";
  }
  if (call.in_place == 0 && collective == "broadcast") {
    return "oneCCL's broadcast has one buffer: there is no broadcast out of place";
  }
  prepared.first = row->first;
  prepared.second = row->second;
  if (collective == "barrier") return {};
  prepared.send = static_cast<const std::byte*>(call.send);
  prepared.receive = static_cast<std::byte*>(call.recv);
  prepared.root = call.root;
  if (std::string reason = translate_type(call, row->reduces, prepared); !reason.empty()) return reason;
  if (row->reduces) {
    if (std::string reason = translate_op(call, prepared); !reason.empty()) return reason;
  }
  if (std::string reason = translate_count(call, prepared); !reason.empty()) return reason;
  if (std::string reason = translate_pairing(call, prepared); !reason.empty()) return reason;
  std::string reason =
      translate_blocks(call, call.send_counts, call.send_displacements, prepared.send_blocks, prepared.send_counts);
  if (!reason.empty()) return reason;
  return translate_blocks(call, call.recv_counts, call.recv_displacements, prepared.receive_blocks,
                          prepared.receive_counts);
}

}  // namespace tutti::backend_oneccl
