// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one dtype and the values of its inputs as device code: one kernel for each op. They are compiled
// and never run (compile.py), so that what a GPU cannot compile, or not as it is meant, is found without a GPU.
// TUTTI_DEVICE_DTYPE is the dtype's enumerator, e.g. bf16.
#include <cstdint>
#include <type_traits>

#include "harness/verify/input_values.h"
#include "impl/reduce/scalar.h"

namespace {

using tutti::Dtype;
using tutti::Op;
namespace verify = tutti::harness::verify;

template <Dtype dtype>
struct ElementOf;
#define TUTTI_ROW(id, element, name) \
  template <>                        \
  struct ElementOf<Dtype::id> {      \
    using type = element;            \
  };
using namespace tutti;  // the table's types
TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
using Element = typename ElementOf<Dtype::TUTTI_DEVICE_DTYPE>::type;

constexpr int kPack = 16 / static_cast<int>(sizeof(Element));  ///< elements of one access

template <class Storage>
struct alignas(16) Pack {
  Storage at[kPack];
};

__device__ unsigned int thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

/// destination[i] <- source_0[i] op source_1[i] op ..., a pack per thread; avg is divided.
template <Op op>
__device__ void reduce(Element* destination, const Element* const* sources, int source_count, int ranks) {
  using E = tutti::scalar::Elementwise<Element, op>;
  using Storage = typename E::Storage;
  const auto pack_of = [](const Element* elements) {
    return reinterpret_cast<const Pack<Storage>*>(elements)[thread()];
  };
  typename E::Accumulator totals[kPack];
  const Pack<Storage> first = pack_of(sources[0]);
#pragma unroll
  for (int i = 0; i < kPack; ++i) totals[i] = E::load(first.at[i]);
  if constexpr (op != Op::none) {
    for (int s = 1; s < source_count; ++s) {
      const Pack<Storage> next = pack_of(sources[s]);
#pragma unroll
      for (int i = 0; i < kPack; ++i) totals[i] = E::combine(totals[i], E::load(next.at[i]));
    }
  }
  Pack<Storage> result;
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    if constexpr (op == Op::avg) totals[i] = E::divide(totals[i], ranks);
    result.at[i] = E::store(totals[i]);
  }
  reinterpret_cast<Pack<Storage>*>(destination)[thread()] = result;
}

/// elements[i] <- elements[i] * factor, and what is added to it: a product that must not be fused with a sum.
__device__ void scale_and_add(Element* elements, const Element* others, const Element* factor) {
  using E = tutti::scalar::Elementwise<Element, Op::premul_sum>;
  using Storage = typename E::Storage;
  auto* const mine = reinterpret_cast<Storage*>(elements) + thread();
  const auto own = E::scale(*mine, *reinterpret_cast<const Storage*>(factor));
  const auto other = reinterpret_cast<const Storage*>(others)[thread()];
  *mine = E::store(E::combine(E::load(own), E::load(other)));
}

/// The values that the verifier has as inputs of an op.
template <Op op>
__host__ __device__ Element value_of(std::uint32_t index, const verify::Stream& stream, bool is_random) {
  if constexpr (!std::is_integral_v<Element>) {
    if (is_random && op == Op::prod) return verify::random_factor<Element>(index, stream);
    if (is_random) return verify::random_summand<Element>(index, stream);
  }
  if constexpr (op == Op::sum) {
    if (stream.free == stream.ranks) return verify::summand<Element, verify::Sharing::all_free>(index, stream);
    return verify::summand<Element, verify::Sharing::by_role>(index, stream);
  } else if constexpr (op == Op::prod) {
    return verify::factor<Element>(index, stream);
  } else if constexpr (tutti::domain_of(op) == tutti::OpDomain::integers) {
    return verify::bits<Element, op>(index, stream);
  } else {
    return verify::arbitrary<Element>(index, stream);
  }
}

template <Op op>
__device__ void fill(Element* elements, std::uint32_t first, const verify::Stream& stream, bool is_random) {
  elements[thread()] = value_of<op>(first + thread(), stream, is_random);
}

__host__ __device__ constexpr bool exists(Op op) { return tutti::op_exists(op, Dtype::TUTTI_DEVICE_DTYPE); }

}  // namespace

// A kernel's name says its op in the compiler's table of registers.
#define TUTTI_KERNELS(op)                                                                                         \
  __global__ void reduce_##op(Element* destination, const Element* const* sources, int source_count, int ranks) { \
    if constexpr (exists(Op::op)) reduce<Op::op>(destination, sources, source_count, ranks);                      \
  }                                                                                                               \
  __global__ void fill_##op(Element* elements, std::uint32_t first, verify::Stream stream, bool is_random) {      \
    if constexpr (exists(Op::op)) fill<Op::op>(elements, first, stream, is_random);                               \
  }
#define TUTTI_ROW(id, name, domain) TUTTI_KERNELS(id)
TUTTI_OPS(TUTTI_ROW)
TUTTI_KERNELS(none)
#undef TUTTI_ROW

__global__ void scale_premul_sum(Element* elements, const Element* others, const Element* factor) {
  scale_and_add(elements, others, factor);
}
