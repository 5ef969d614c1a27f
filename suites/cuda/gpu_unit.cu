// SPDX-License-Identifier: Apache-2.0
// The device text of one dtype, TUTTI_DEVICE_DTYPE, run on GPU 0 and compared with the host's bits.
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "impl/reduce/kernels.h"
#include "suites/cuda/device_text.cu"
#include "suites/cuda/gpu_unit.h"

namespace tutti::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kSources = 3;

/// Memory of the GPU. A call of CUDA that fails ends the program: nothing after it would mean anything.
void expect(cudaError_t failure, const char* what) {
  TUTTI_ASSERT(failure == cudaSuccess, "{}: {}, {}", what, cudaGetErrorName(failure), cudaGetErrorString(failure));
}
template <class T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& host) : count_(host.size()) {
    expect(cudaMalloc(&at_, count_ * sizeof(T)), "cudaMalloc");
    expect(cudaMemcpy(at_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~OnGpu() { (void)cudaFree(at_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  [[nodiscard]] T* get() const { return static_cast<T*>(at_); }
  [[nodiscard]] std::vector<T> read() const {
    expect(cudaGetLastError(), "a launch");
    expect(cudaDeviceSynchronize(), "a kernel");
    std::vector<T> host(count_);
    expect(cudaMemcpy(host.data(), at_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }

 private:
  void* at_ = nullptr;
  std::size_t count_;
};

using Elements = std::vector<Element>;
using Bits = std::uint64_t;

Bits bits_of(const Element& element) {
  Bits bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}
bool is_nan(const Element& element) {
  if constexpr (std::is_integral_v<Element>) {
    return false;
  } else {
    using E = scalar::Elementwise<Element, Op::sum>;
    typename E::Storage storage;
    std::memcpy(&storage, &element, sizeof storage);
    const auto value = E::load(storage);
    return value != value;
  }
}

/// Any bits; of wide floats also zeros, subnormal ones, infinities and NaNs, which random bits seldom are.
Elements any_bits(std::size_t count, std::uint64_t seed) {
  Elements elements(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  constexpr int kExponent = sizeof(Element) == 8 ? 11 : 8;
  constexpr int kPlace = sizeof(Element) * 8 - 1 - kExponent;
  constexpr Bits kMask = ((Bits{1} << kExponent) - 1) << (sizeof(Element) >= 4 ? kPlace : 0);
  for (Element& element : elements) {
    state = (state ^ (state >> 29U)) * 0xbf58476d1ce4e5b9U + 0x94d049bb133111ebU;
    Bits bits = state ^ (state >> 31U);
    if constexpr (sizeof(Element) >= 4 && !std::is_integral_v<Element>) {
      const unsigned kind = static_cast<unsigned>(state >> 59U);
      if (kind == 0) bits &= ~kMask;
      if (kind == 1) bits |= kMask;
      if (kind == 2) bits = (bits | kMask) & ~((Bits{1} << kPlace) - 1);
      if (kind == 3) bits &= Bits{1} << (sizeof(Element) * 8 - 1);
    }
    std::memcpy(&element, &bits, sizeof element);
  }
  return elements;
}

Compared compared(const char* what, const Elements& expected, const Elements& actual) {
  Compared result{.elements = static_cast<std::int64_t>(expected.size())};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (bits_of(expected[i]) == bits_of(actual[i]) || (is_nan(expected[i]) && is_nan(actual[i]))) continue;
    if (result.wrong++ > 0) continue;
    result.first = fmt::format("{} {}: element {} is 0x{:x} on the GPU, 0x{:x} on the host", what,
                               to_string(Dtype::TUTTI_DEVICE_DTYPE), i, bits_of(actual[i]), bits_of(expected[i]));
  }
  return result;
}

using ReduceKernel = void (*)(Element*, const Element* const*, int, int);
using FillKernel = void (*)(Element*, std::uint32_t, verify::Stream, bool);

template <Op op>
Compared compare_reduction(ReduceKernel kernel, int blocks) {
  if constexpr (!exists(op)) {
    return {};
  } else {
    const auto count = static_cast<std::size_t>(blocks) * kThreads * kPack;
    std::vector<Elements> inputs;
    for (int s = 0; s < kSources; ++s) inputs.push_back(any_bits(count, static_cast<std::uint64_t>(s) + 1));
    const OnGpu<Element> first(inputs[0]), second(inputs[1]), third(inputs[2]), result(inputs[0]);
    const OnGpu<const Element*> list(std::vector<const Element*>{first.get(), second.get(), third.get()});
    kernel<<<static_cast<unsigned>(blocks), kThreads>>>(result.get(), list.get(), op == Op::none ? 1 : kSources, kSources);
    Elements expected(count);
    std::byte* const destination[] = {reinterpret_cast<std::byte*>(expected.data())};
    const std::byte* sources[kSources];
    for (int s = 0; s < kSources; ++s) sources[s] = reinterpret_cast<const std::byte*>(inputs[static_cast<std::size_t>(s)].data());
    kernel_for(Dtype::TUTTI_DEVICE_DTYPE, op)({.destinations = destination,
                                               .destination_count = 1,
                                               .sources = sources,
                                               .source_count = op == Op::none ? 1 : kSources,
                                               .bytes = count * sizeof(Element),
                                               .ranks = kSources,
                                               .is_final = true});
    return compared(std::string(to_string(op)).c_str(), expected, result.read());
  }
}

template <Op op>
Compared compare_inputs(FillKernel kernel, int blocks) {
  if constexpr (!exists(op)) {
    return {};
  } else {
    Compared all;
    const auto count = static_cast<std::size_t>(blocks) * kThreads;
    for (const std::uint32_t free : {3U, 1U}) {
      for (const bool is_random : {false, true}) {
        const verify::Stream stream{.own = {.first = 0x12345678, .second = 0x9abcdef0},
                                    .common = {.first = 0x0f1e2d3c, .second = 0x4b5a6978},
                                    .rank = 1,
                                    .ranks = 3,
                                    .seat = 1,
                                    .steady = 0,
                                    .steady_turn = 0,
                                    .rank_mask = 3,
                                    .rank_bits = 0x1234,
                                    .active = 3,
                                    .free = free,
                                    .magnitudes = sizeof(Element) >= 4 ? 0xfffU : 1U};
        const OnGpu<Element> result((Elements(count)));
        constexpr std::uint32_t kFirst = 1000;
        kernel<<<static_cast<unsigned>(blocks), kThreads>>>(result.get(), kFirst, stream, is_random);
        Elements expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          expected[i] = value_of<op>(kFirst + static_cast<std::uint32_t>(i), stream, is_random);
        }
        all += compared(("inputs of " + std::string(to_string(op))).c_str(), expected, result.read());
      }
    }
    return all;
  }
}

Compared arithmetic(int packs) {
  const int blocks = packs / kThreads;
  Compared all = compare_reduction<Op::none>(reduce_none, blocks);
#define TUTTI_ROW(id, name, domain) all += compare_reduction<Op::id>(reduce_##id, blocks);
  TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
  return all;
}
Compared inputs(int packs) {
  const int blocks = packs / kThreads;
  Compared all = compare_inputs<Op::none>(fill_none, blocks);
#define TUTTI_ROW(id, name, domain) all += compare_inputs<Op::id>(fill_##id, blocks);
  TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
  return all;
}

#define TUTTI_JOIN_(a, b) a##b
#define TUTTI_JOIN(a, b) TUTTI_JOIN_(a, b)

}  // namespace

const DeviceText TUTTI_JOIN(k_text_, TUTTI_DEVICE_DTYPE){.arithmetic = arithmetic, .inputs = inputs};

}  // namespace tutti::cuda
