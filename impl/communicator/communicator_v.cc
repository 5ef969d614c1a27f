// SPDX-License-Identifier: Apache-2.0
// The public calls of the v forms, and of operands that are lists of blocks. A list is a divided buffer that begins at
// the lowest of its blocks' addresses.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

#include "impl/communicator/communicator.h"

namespace tutti {
namespace {

template <class AnyPart>
std::vector<Count> counts_of(std::span<const AnyPart> list) {
  std::vector<Count> counts;
  for (const AnyPart& part : list) counts.push_back(part.count);
  return counts;
}

/// Puts `blocks` where the list says, and returns the address from which they are counted.
/// Errors: invalid_argument where a block with elements is at a null pointer.
template <class AnyPart>
Result<std::uintptr_t> place(const char* name, std::span<const AnyPart> list, std::vector<Block>& blocks) {
  std::uintptr_t lowest = std::numeric_limits<std::uintptr_t>::max();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].count == 0) continue;
    if (list[i].address == nullptr) {
      return error(Code::invalid_argument, "block {} of the {} is a null pointer, and has {} elements", i, name,
                   list[i].count);
    }
    lowest = std::min(lowest, reinterpret_cast<std::uintptr_t>(list[i].address));
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(list[i].address);
    blocks[i].offset = list[i].count == 0 ? 0 : static_cast<std::int64_t>(address - lowest);
  }
  return lowest == std::numeric_limits<std::uintptr_t>::max() ? 0 : lowest;
}

/// Completes a call whose input is a list, or whose output is. A rank that has no blocks there has none to place.
Status place_input(std::span<const ConstPart> list, BlockTable& table, Call& call) {
  if (table.input.size() != list.size()) return {};
  TUTTI_ASSIGN_OR_RETURN(const std::uintptr_t base, place("input", list, table.input));
  call.input = reinterpret_cast<const void*>(base);
  return {};
}
Status place_output(std::span<const Part> list, BlockTable& table, Call& call) {
  if (table.output.size() != list.size()) return {};
  TUTTI_ASSIGN_OR_RETURN(const std::uintptr_t base, place("output", list, table.output));
  call.output = reinterpret_cast<void*>(base);
  return {};
}

/// Errors: invalid_argument where the collective has its lists elsewhere, or none.
Status check_lists(Collective collective, std::span<const ConstPart> input, std::span<const Part> output) {
  bool has_input = false, has_output = false;
  switch (collective) {
    case Collective::gather_v:
    case Collective::all_gather_v:
      has_output = true;
      break;
    case Collective::scatter_v:
    case Collective::reduce_scatter_v:
      has_input = true;
      break;
    case Collective::all_to_all_v:
      has_input = has_output = true;
      break;
    default:
      return error(Code::invalid_argument, "{} has no operand that is a list of blocks: the v forms have",
                   to_string(collective));
  }
  for (const auto& [is_list, is_given, name] :
       {std::tuple{has_input, !input.empty(), "input"}, std::tuple{has_output, !output.empty(), "output"}}) {
    if (is_list == is_given) continue;
    return error(Code::invalid_argument, "{}: its {} is {}", to_string(collective), name,
                 is_list ? "a list of blocks, one for each rank; there is none" : "one buffer, and no list of blocks");
  }
  return {};
}

}  // namespace

Call Communicator::placed_v(Call call, const BlockTable& blocks) const {
  const Problem problem{.collective = call.collective, .ranks = ranks(), .root = call.root};
  call.blocks = &blocks;
  const bool has_both = total_of(blocks.input) > 0 && total_of(blocks.output) > 0;
  call.is_in_place = has_both && lies_in_place(problem, rank(), call.input, call.output, blocks);
  return call;
}

Status Communicator::run_v(const Call& call, const BlockTable& blocks) { return run(placed_v(call, blocks)); }

Status Communicator::run_divided(const Call& call, const Division& division) {
  const Problem problem{.collective = call.collective, .ranks = ranks(), .root = call.root};
  TUTTI_ASSIGN_OR_RETURN(const BlockTable blocks, blocks_of(problem, rank(), division, size_of(call.dtype)));
  return run_v(call, blocks);
}

Result<Call> Communicator::listed(Call call, std::span<const ConstPart> input, std::span<const Part> output,
                                  BlockTable& blocks) const {
  TUTTI_RETURN_IF_ERROR(check_lists(call.collective, input, output));
  const Problem problem{.collective = call.collective, .ranks = ranks(), .root = call.root};
  const std::vector<Count> sent = counts_of(input), received = counts_of(output);
  const std::size_t element_bytes = size_of(call.dtype);
  if (call.collective == Collective::all_to_all_v) {
    TUTTI_ASSIGN_OR_RETURN(blocks, blocks_of(problem, {.counts = sent}, {.counts = received}, element_bytes));
  } else {
    TUTTI_ASSIGN_OR_RETURN(blocks,
                           blocks_of(problem, rank(), {.counts = input.empty() ? received : sent}, element_bytes));
  }
  if (!input.empty()) TUTTI_RETURN_IF_ERROR(place_input(input, blocks, call));
  if (!output.empty()) TUTTI_RETURN_IF_ERROR(place_output(output, blocks, call));
  return placed_v(call, blocks);
}

Result<Work> Communicator::post_list(const Call& call, std::span<const ConstPart> input, std::span<const Part> output) {
  BlockTable blocks;
  TUTTI_ASSIGN_OR_RETURN(const Call whole, listed(call, input, output, blocks));
  return post(whole);
}

Status Communicator::run_list(const Call& call, std::span<const ConstPart> input, std::span<const Part> output) {
  BlockTable blocks;
  TUTTI_ASSIGN_OR_RETURN(const Call whole, listed(call, input, output, blocks));
  return run(whole);
}

Status Communicator::gather_v(const void* input, void* output, const Division& division, Dtype dtype, int root,
                              Buffers buffers) {
  return run_divided({.collective = Collective::gather_v,
                      .dtype = dtype,
                      .root = root,
                      .input = input,
                      .output = output,
                      .buffers = buffers},
                     division);
}

Status Communicator::all_gather_v(const void* input, void* output, const Division& division, Dtype dtype,
                                  Buffers buffers) {
  return run_divided(
      {.collective = Collective::all_gather_v, .dtype = dtype, .input = input, .output = output, .buffers = buffers},
      division);
}

Status Communicator::scatter_v(const void* input, void* output, const Division& division, Dtype dtype, int root,
                               Buffers buffers) {
  return run_divided({.collective = Collective::scatter_v,
                      .dtype = dtype,
                      .root = root,
                      .input = input,
                      .output = output,
                      .buffers = buffers},
                     division);
}

Status Communicator::reduce_scatter_v(const void* input, void* output, const Division& division, Dtype dtype,
                                      Reduction reduction, Buffers buffers) {
  return run_divided({.collective = Collective::reduce_scatter_v,
                      .dtype = dtype,
                      .op = reduction.op,
                      .input = input,
                      .output = output,
                      .factor = reduction.factor,
                      .buffers = buffers},
                     division);
}

Status Communicator::all_to_all_v(const void* input, const Division& send, void* output, const Division& receive,
                                  Dtype dtype, Buffers buffers) {
  const Problem problem{.collective = Collective::all_to_all_v, .ranks = ranks()};
  TUTTI_ASSIGN_OR_RETURN(const BlockTable blocks, blocks_of(problem, send, receive, size_of(dtype)));
  return run_v(
      {.collective = Collective::all_to_all_v, .dtype = dtype, .input = input, .output = output, .buffers = buffers},
      blocks);
}

Status Communicator::gather(const void* input, std::span<const Part> output, Dtype dtype, int root, Buffers buffers) {
  return run_list(
      {.collective = Collective::gather_v, .dtype = dtype, .root = root, .input = input, .buffers = buffers}, {},
      output);
}

Status Communicator::all_gather(const void* input, std::span<const Part> output, Dtype dtype, Buffers buffers) {
  return run_list({.collective = Collective::all_gather_v, .dtype = dtype, .input = input, .buffers = buffers}, {},
                  output);
}

Status Communicator::scatter(std::span<const ConstPart> input, void* output, Dtype dtype, int root, Buffers buffers) {
  return run_list(
      {.collective = Collective::scatter_v, .dtype = dtype, .root = root, .output = output, .buffers = buffers}, input,
      {});
}

Status Communicator::reduce_scatter(std::span<const ConstPart> input, void* output, Dtype dtype, Reduction reduction,
                                    Buffers buffers) {
  return run_list({.collective = Collective::reduce_scatter_v,
                   .dtype = dtype,
                   .op = reduction.op,
                   .output = output,
                   .factor = reduction.factor,
                   .buffers = buffers},
                  input, {});
}

Status Communicator::all_to_all(std::span<const ConstPart> input, std::span<const Part> output, Dtype dtype,
                                Buffers buffers) {
  return run_list({.collective = Collective::all_to_all_v, .dtype = dtype, .buffers = buffers}, input, output);
}

}  // namespace tutti
