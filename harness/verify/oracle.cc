// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/oracle.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "harness/verify/accumulation.h"

namespace tutti::harness::verify {
namespace {

constexpr std::size_t kRememberedBytes = std::size_t{4} << 20U;

/// One chunk of a reduced block, from element `first` of the input blocks on.
template <class T>
void reduce_chunk(std::span<std::byte> bytes, const Operation& operation, const Origin& origin, Count first) {
  using A = Accumulation<T>;
  const std::size_t elements = bytes.size() / sizeof(T);
  std::array<T, Oracle::kChunk> input;
  std::array<typename A::Type, Oracle::kChunk> total;
  const Op op = operation.op;
  for (int rank = origin.first; rank <= origin.last; ++rank) {
    fill_input(std::as_writable_bytes(std::span(input)).first(bytes.size()), input_of(operation, rank),
               operation.input_place(rank, origin.block).first + first);
    if (op == Op::premul_sum) {
      for (std::size_t i = 0; i < elements; ++i) input[i] = scaled(input[i], factor_of(rank));
    }
    if (rank == origin.first) {
      for (std::size_t i = 0; i < elements; ++i) total[i] = A::load(input[i]);
    } else {
      visit_op(op, [&]<Op known>(std::integral_constant<Op, known>) {
        for (std::size_t i = 0; i < elements; ++i) total[i] = combine<T, known>(total[i], input[i]);
      });
    }
  }
  for (std::size_t i = 0; i < elements; ++i) input[i] = finish<T>(total[i], op, operation.problem.ranks);
  std::memcpy(bytes.data(), input.data(), bytes.size());
}

}  // namespace

Count Operation::shift_in_place(int rank) const {
  if (input_blocks(problem, rank) == 0 || output_blocks(problem, rank) == 0) return 0;
  const int block = in_place_block(problem, rank);
  return output_place(rank, std::max(0, block)).first - input_place(rank, std::max(0, -block)).first;
}

InputSpec input_of(const Operation& operation, int rank) {
  return {.dtype = operation.dtype,
          .op = operation.op,
          .ranks = operation.problem.ranks,
          .rank = rank,
          .seed = operation.seed,
          .salt = operation.salt,
          .values = operation.values};
}

void fill_expected(std::span<std::byte> bytes, const Operation& operation, const BlockPart& part) {
  const Origin origin = origin_of(operation.problem, part.rank, part.block);
  Count first = part.first;
  if (operation.is_copy_of(origin.ranks())) {
    const Count from = operation.input_place(origin.first, origin.block).first;
    return fill_input(bytes, input_of(operation, origin.first), from + first);
  }
  const std::size_t chunk_bytes = Oracle::kChunk * size_of(operation.dtype);
  while (!bytes.empty()) {
    const std::span<std::byte> chunk = bytes.first(std::min(bytes.size(), chunk_bytes));
    visit_dtype(operation.dtype,
                [&]<class T>(std::type_identity<T>) { reduce_chunk<T>(chunk, operation, origin, first); });
    bytes = bytes.subspan(chunk.size());
    first += Oracle::kChunk;
  }
}

std::span<const std::byte> Oracle::expect(const BlockPart& part, Count elements) {
  TUTTI_ASSERT(part.first % kChunk == 0 && elements <= kChunk, "{} elements from {}", elements, part.first);
  const Count count = operation_.output_place(part.rank, part.block).count;
  const std::size_t block_bytes = static_cast<std::size_t>(count) * size_of(operation_.dtype);
  const Origin origin = origin_of(operation_.problem, part.rank, part.block);
  const bool reduces = is_reducing(operation_.problem.collective);
  if (reduces && block_bytes <= kRememberedBytes) return remembered(part, origin, elements);
  chunk_.resize(static_cast<std::size_t>(elements) * size_of(operation_.dtype));
  fill_expected(chunk_, operation_, part);
  return chunk_;
}

std::span<const std::byte> Oracle::remembered(const BlockPart& part, const Origin& origin, Count elements) {
  if (remembered_ != origin) {
    remembered_ = origin;
    const Count count = operation_.output_place(part.rank, part.block).count;
    block_.resize(static_cast<std::size_t>(count) * size_of(operation_.dtype));
    is_known_.assign(static_cast<std::size_t>((count + kChunk - 1) / kChunk), false);
  }
  const std::size_t element_bytes = size_of(operation_.dtype);
  const auto chunk = static_cast<std::size_t>(part.first / kChunk);
  const std::size_t start = static_cast<std::size_t>(part.first) * element_bytes;
  if (!is_known_[chunk]) {
    const std::size_t whole = std::min(block_.size() - start, static_cast<std::size_t>(kChunk) * element_bytes);
    fill_expected(std::span(block_).subspan(start, whole), operation_, part);
    is_known_[chunk] = true;
  }
  return std::span(block_).subspan(start, static_cast<std::size_t>(elements) * element_bytes);
}

}  // namespace tutti::harness::verify
