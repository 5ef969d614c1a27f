// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/kernel_faults.h"

#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "harness/verify/input_values.h"

namespace tutti::harness::faults {
namespace {

struct State {
  Kernel real = nullptr;
  Dtype dtype = Dtype::f32;
  unsigned bit = 0;
};

const State& state_of(const KernelArguments& arguments) { return *static_cast<const State*>(arguments.context); }

void flip(const KernelArguments& arguments) {
  const State& state = state_of(arguments);
  if (arguments.source_count > 0) return state.real(arguments);
  for (std::byte* const destination : std::span(arguments.destinations, arguments.destination_count)) {
    destination[state.bit / 8] ^= std::byte{1} << (state.bit % 8);
  }
}

template <class T>
T narrowed(T value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr unsigned kHalf = 4 * sizeof(T);
    using Unsigned = std::make_unsigned_t<T>;
    const auto low = static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(value) << kHalf));
    return static_cast<T>(low >> kHalf);  // with the sign, where T has one
  } else {
    using Code = typename Format<T>::Code;
    constexpr int kMantissa = Format<T>::kMantissaBits;
    constexpr int kKept = (kMantissa + 2) / 2 - 1;  // one is implicit
    return std::bit_cast<T>(
        static_cast<Code>(std::bit_cast<Code>(value) & ~static_cast<Code>((Code{1} << (kMantissa - kKept)) - 1U)));
  }
}

void narrow(const KernelArguments& arguments) {
  const State& state = state_of(arguments);
  state.real(arguments);
  if (arguments.source_count < 2) return;
  visit_dtype(state.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::byte* const destination : std::span(arguments.destinations, arguments.destination_count)) {
      for (std::size_t at = 0; at < arguments.bytes; at += sizeof(T)) {
        T value;
        std::memcpy(&value, destination + at, sizeof(T));
        value = narrowed(value);
        std::memcpy(destination + at, &value, sizeof(T));
      }
    }
  });
}

}  // namespace

BrokenKernel flipping_kernel(Kernel real, unsigned bit) {
  return {.kernel = flip, .context = std::make_shared<State>(State{.real = real, .bit = bit})};
}

BrokenKernel narrowing_kernel(Kernel real, Dtype dtype) {
  return {.kernel = narrow, .context = std::make_shared<State>(State{.real = real, .dtype = dtype})};
}

}  // namespace tutti::harness::faults
