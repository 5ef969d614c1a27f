// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/nccl/translate.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace tutti::backend_nccl {
namespace {

/// A row per dtype.
struct TypeRow {
  std::string_view name;
  std::uint64_t bytes;
  Type type;
};
constexpr TypeRow kTypes[] = {{"int8", 1, kInt8},         {"uint8", 1, kUint8},   {"int32", 4, kInt32},
                              {"uint32", 4, kUint32},     {"int64", 8, kInt64},   {"uint64", 8, kUint64},
                              {"half", 2, kHalf},         {"float", 4, kFloat},   {"double", 8, kDouble},
                              {"bfloat16", 2, kBfloat16}, {"f8e4m3", 1, kF8e4m3}, {"f8e5m2", 1, kF8e5m2}};
constexpr const char* kTypeNames = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2";
bool is_f8(Type type) { return type == kF8e4m3 || type == kF8e5m2; }
constexpr int kCapabilityOfF8 = 90;

/// Those that NCCL has not.
constexpr std::string_view kMissingTypes[] = {"int16", "uint16", "bool"};

/// A row per op that NCCL has; that of premul_sum is made for each call.
struct OpRow {
  std::string_view name;
  Op op;
};
constexpr std::string_view kOwnOp = "premul_sum";
constexpr OpRow kOps[] = {{"sum", kSum}, {"prod", kProd}, {"min", kMin}, {"max", kMax}, {"avg", kAvg}, {kOwnOp, kSum}};
constexpr const char* kOpNames = "sum prod min max avg premul_sum";
constexpr std::string_view kMissingOps[] = {"band", "bor", "bxor"};

/// Collectives that others have.
constexpr std::string_view kMissingCollectives[] = {"scan", "exscan"};

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::string unknown(const char* kind, std::string_view name, const std::string& known) {
  return std::string(kind) + " '" + std::string(name) + "' is not known here (one of: " + known + ")";
}

// Each translator fills a part of `prepared` and returns why NCCL cannot do it, or nothing.

std::string translate_type(const TuttiBackendCall& call, Prepared& prepared) {
  if (is_among(call.dtype, kMissingTypes)) return "NCCL has no " + std::string(call.dtype);
  const auto* const row = std::ranges::find(kTypes, std::string_view(call.dtype), &TypeRow::name);
  if (row == std::end(kTypes)) return unknown("dtype", call.dtype, kTypeNames);
  prepared.type = row->type;
  prepared.element_bytes = row->bytes;
  if (row->bytes == call.element_bytes) return {};
  return std::string(row->name) + " has " + std::to_string(row->bytes) + " bytes here, not " +
         std::to_string(call.element_bytes);
}

std::string translate_op(const TuttiBackendCall& call, const Abilities& abilities, Prepared& prepared) {
  const std::string_view op = call.op;
  if (is_among(op, kMissingOps)) return "NCCL has no " + std::string(op);
  const auto* const row = std::ranges::find(kOps, op, &OpRow::name);
  if (row == std::end(kOps)) return unknown("op", op, kOpNames);
  prepared.op = row->op;
  prepared.has_own_op = op == kOwnOp;
  if (!is_f8(prepared.type)) return {};
  if (abilities.version != 0 && abilities.version < kVersionOfF8) {
    return "NCCL " + version_text(abilities.version) + " has no arithmetic for " + call.dtype + ": 2.24 is the first";
  }
  if (abilities.capability != 0 && abilities.capability < kCapabilityOfF8) {
    return "NCCL has arithmetic for " + std::string(call.dtype) + " on GPUs of compute capability 9.0 and later, not " +
           std::to_string(abilities.capability / 10) + "." + std::to_string(abilities.capability % 10);
  }
  return {};
}

std::string translate_count(const TuttiBackendCall& call, const Group* group, Prepared& prepared) {
  const int ranks = group == nullptr ? 1 : group->ranks;
  const auto most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(call.element_bytes) /
                    std::max({ranks, call.window, 1});
  if (call.count < 0 || call.count > most) {
    return "count " + std::to_string(call.count) + " does not fit one call of NCCL: it takes 0 to " +
           std::to_string(most);
  }
  prepared.count = static_cast<std::size_t>(call.count);
  return {};
}

/// With which ranks, and how many messages.
std::string translate_pairing(const TuttiBackendCall& call, const Group* group, Prepared& prepared) {
  if (call.window < 0) return "a window of " + std::to_string(call.window) + " messages: it takes 0 or more";
  prepared.window = call.window;
  prepared.is_one_pair = call.first_of_pair != call.second_of_pair;
  if (group == nullptr) return {};
  if (!prepared.is_one_pair) {
    prepared.partner = partner_in(call.collective, group->rank, group->ranks);
  } else if (group->rank == call.first_of_pair || group->rank == call.second_of_pair) {
    prepared.partner = group->rank == call.first_of_pair ? call.second_of_pair : call.first_of_pair;
  }
  return {};
}

std::string translate_blocks(const TuttiBackendCall& call, const int64_t* counts, const int64_t* displacements,
                             std::vector<Block>& blocks) {
  for (int32_t i = 0; counts != nullptr && i < call.blocks; ++i) {
    if (counts[i] < 0 || displacements[i] < 0) {
      return "block " + std::to_string(i) + " has " + std::to_string(counts[i]) + " elements from element " +
             std::to_string(displacements[i]) + " on: both take 0 or more";
    }
    blocks.push_back({.count = static_cast<std::size_t>(counts[i]),
                      .offset_bytes = static_cast<std::size_t>(displacements[i]) * call.element_bytes});
  }
  return {};
}

std::string translate_row(const TuttiBackendCall& call, const Row& row, const Group* group) {
  if (call.in_place != 0 && row.overwrites) {
    return "NCCL has no " + std::string(row.name) + " in place: messages would arrive in what is still to be sent";
  }
  if (row.answers && group != nullptr && group->of_this_process > 1) {
    return "NCCL has no " + std::string(row.name) +
           " between ranks of one process, whose calls start together: an "
           "answer follows what it answers";
  }
  return {};
}

std::string text_of(const TuttiBackendCall& call) {
  std::string text(call.collective);
  if (text == "barrier") return text;
  text += call.blocks > 0 ? "" : " of " + std::to_string(call.count);
  text += std::string(" ") + call.dtype;
  if (std::string_view(call.op) != "none") text += std::string(" ") + call.op;
  return text;
}

}  // namespace

std::string translate(const TuttiBackendCall& call, const Abilities& abilities, Prepared& prepared) {
  const std::string_view collective = call.collective;
  if (is_among(collective, kMissingCollectives)) return "NCCL has no " + std::string(collective);
  const Row* const row = find_row(collective);
  if (row == nullptr) return unknown("collective", collective, row_names());
  if (call.memory != TUTTI_MEMORY_CUDA) return "NCCL is called with buffers in the memory of a GPU only";
  const Group* const group = prepared.group.get();
  if (std::string reason = translate_row(call, *row, group); !reason.empty()) return reason;
  prepared.function = row->function;
  prepared.stream = call.stream;
  prepared.what = text_of(call);
  if (collective == "barrier") return {};
  prepared.send = static_cast<const std::byte*>(call.send);
  prepared.receive = static_cast<std::byte*>(call.recv);
  prepared.root = call.root;
  if (std::string reason = translate_type(call, prepared); !reason.empty()) return reason;
  if (row->reduces) {
    if (std::string reason = translate_op(call, abilities, prepared); !reason.empty()) return reason;
  } else if (is_f8(prepared.type)) {
    prepared.type = kUint8;  // versions before 2.24 have no such type, and later ones refuse it on older GPUs
  }
  if (std::string reason = translate_count(call, group, prepared); !reason.empty()) return reason;
  if (std::string reason = translate_pairing(call, group, prepared); !reason.empty()) return reason;
  std::string reason = translate_blocks(call, call.send_counts, call.send_displacements, prepared.send_blocks);
  if (!reason.empty()) return reason;
  return translate_blocks(call, call.recv_counts, call.recv_displacements, prepared.receive_blocks);
}

}  // namespace tutti::backend_nccl
