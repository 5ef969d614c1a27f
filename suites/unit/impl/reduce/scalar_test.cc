// SPDX-License-Identifier: Apache-2.0
// What one element is reduced to by scalar.h, against the kernels of every instruction set that this CPU runs, bit for
// bit: every dtype and op, random bits and special values, 1 to 9 sources. Apart are sums and products of two NaNs: of
// which of them the payload stays is left to the compiler.
#include "impl/reduce/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "impl/reduce/kernels_isa.h"

namespace tutti {
namespace {

using scalar::Elementwise;

constexpr int kMostSources = 9;
constexpr std::size_t kSmallBytes = 48;

template <class T>
using Word = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class To, class From>
To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T>
constexpr int mantissa_bits() {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return 7;
  } else if constexpr (std::is_class_v<T>) {
    return T::kMantissaBits;
  } else {
    return std::numeric_limits<T>::digits - 1;
  }
}

/// Parts of a float's code.
template <class T>
struct Layout {
  using W = Word<T>;
  static constexpr W kSign = static_cast<W>(W{1} << (8 * sizeof(T) - 1));
  static constexpr W kHidden = static_cast<W>(W{1} << mantissa_bits<T>());
  static constexpr W kTop = static_cast<W>(kSign - kHidden);  ///< all exponents' bits
  static constexpr W kOne = static_cast<W>((kTop >> 1U) & ~(kHidden - 1U));
  static constexpr W kQuiet = static_cast<W>(kHidden >> 1U);
};

/// The codes at which arithmetic changes: of integers the least and the greatest, of floats zeros, the ends of the
/// subnormal and normal numbers, about 1, infinities, and NaNs, quiet and signalling, with and without a payload.
template <class T>
std::vector<Word<T>> special_codes() {
  using W = Word<T>;
  constexpr W kSign = static_cast<W>(W{1} << (8 * sizeof(T) - 1));
  std::vector<W> codes{0, 1, 2, 3, static_cast<W>(kSign - 2), static_cast<W>(kSign - 1)};
  if constexpr (!std::is_integral_v<T>) {
    using L = Layout<T>;
    for (const unsigned more : {0U, 1U, 2U}) {
      codes.push_back(static_cast<W>(L::kHidden - 1U + more));
      codes.push_back(static_cast<W>(L::kOne + more));
      codes.push_back(static_cast<W>(L::kTop - 1U + more));
      codes.push_back(static_cast<W>((L::kTop | L::kQuiet) + more));
    }
  }
  const std::size_t positive = codes.size();
  for (std::size_t i = 0; i < positive; ++i) codes.push_back(static_cast<W>(codes[i] | kSign));
  return codes;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return std::isnan(value.to_float());
  }
}

template <class T>
using Inputs = std::vector<std::vector<T>>;  // of each source

/// Any bits, so that of narrow floats every code is there. Of wide ones three of four are near 1, to be rounded.
template <class T>
Inputs<T> random_inputs(std::size_t count) {
  std::mt19937_64 random(5);
  Inputs<T> inputs(kMostSources, std::vector<T>(count));
  for (auto& input : inputs) {
    for (std::size_t i = 0; i < count; ++i) {
      auto code = static_cast<Word<T>>(random());
      if constexpr (std::is_floating_point_v<T>) {
        using L = Layout<T>;
        constexpr auto kLow = L::kHidden * 8 - 1;  // three bits of the exponent
        if (i % 4 != 0) code = (code & (L::kSign | kLow)) | (L::kOne & ~kLow);
      }
      input[i] = same_bits<T>(code);
    }
  }
  return inputs;
}

/// Every pair of special values as the first two sources; the others have more of them.
template <class T>
Inputs<T> special_inputs() {
  const auto codes = special_codes<T>();
  const std::size_t many = codes.size();
  Inputs<T> inputs(kMostSources, std::vector<T>(many * many));
  for (std::size_t s = 0; s < inputs.size(); ++s) {
    for (std::size_t i = 0; i < many * many; ++i) {
      const std::size_t chosen = s == 0 ? i / many : s == 1 ? i : i / many * s + i * (s + 1);
      inputs[s][i] = same_bits<T>(codes[chosen % many]);
    }
  }
  return inputs;
}

/// What is to come out of `sources` first ones, and for which elements any NaN will do.
template <class T>
struct Expected {
  std::vector<T> elements;
  std::vector<bool> takes_any_nan;
};

template <class T, Op op>
Expected<T> reduced_by_scalars(const Inputs<T>& inputs, int sources, bool divides, int ranks) {
  using E = Elementwise<T, op>;
  using Copy = Elementwise<T, Op::none>;
  using Storage = typename E::Storage;
  static_assert(std::is_same_v<Storage, typename Copy::Storage> && sizeof(Storage) == sizeof(T));
  constexpr bool kKeepsTheFirstNan = op == Op::min || op == Op::max;
  const std::size_t count = inputs[0].size();
  Expected<T> expected{std::vector<T>(count), std::vector<bool>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    const auto stored = [&](int s) { return same_bits<Storage>(inputs[static_cast<std::size_t>(s)][i]); };
    if (sources == 1 && !divides && !std::is_same_v<T, Boolean>) {
      expected.elements[i] = same_bits<T>(Copy::store(Copy::load(stored(0))));
      continue;
    }
    auto total = E::load(stored(0));
    for (int s = 1; s < sources; ++s) {
      const auto other = E::load(stored(s));
      if (!kKeepsTheFirstNan && is_nan(total) && is_nan(other)) expected.takes_any_nan[i] = true;
      total = E::combine(total, other);
    }
    if constexpr (op == Op::avg) {
      if (divides) total = E::divide(total, ranks);
    }
    expected.elements[i] = same_bits<T>(E::store(total));
  }
  return expected;
}

/// What differs first, or an empty string.
template <class T>
std::string difference(const std::vector<T>& actual, const Expected<T>& expected, const Inputs<T>& inputs,
                       int sources) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const T element = expected.elements[i];
    if (expected.takes_any_nan[i] && is_nan(element) && is_nan(actual[i])) continue;
    if (std::memcmp(&actual[i], &element, sizeof(T)) == 0) continue;
    std::string text;
    for (int s = 0; s < sources; ++s) {
      text += fmt::format(" 0x{:x}", same_bits<Word<T>>(inputs[static_cast<std::size_t>(s)][i]));
    }
    return fmt::format("element {} of{} is 0x{:x} by the kernel, 0x{:x} by scalars", i, text,
                       same_bits<Word<T>>(actual[i]), same_bits<Word<T>>(element));
  }
  return {};
}

struct Run {
  Dtype dtype;
  Op op;
  int sources;
  bool divides;
  int ranks;
};

template <class T>
void expect_of_kernels(const Run& run, const Inputs<T>& inputs, const Expected<T>& expected) {
  const std::size_t bytes = inputs[0].size() * sizeof(T);
  std::vector<const std::byte*> from;
  for (const auto& input : inputs) from.push_back(reinterpret_cast<const std::byte*>(input.data()));
  for (const KernelTable* table : runnable_kernels()) {
    const std::string what =
        fmt::format("{} {} {}, {} sources, {}", table->isa, to_string(run.dtype), to_string(run.op), run.sources,
                    run.divides ? fmt::format("by {}", run.ranks) : "undivided");
    std::vector<T> actual(inputs[0].size());
    auto* const to = reinterpret_cast<std::byte*>(actual.data());
    kernel_for_isa(*table, run.dtype, run.op)({.destinations = &to,
                                               .destination_count = 1,
                                               .sources = from.data(),
                                               .source_count = run.sources,
                                               .bytes = bytes,
                                               .ranks = run.ranks,
                                               .is_final = run.divides});
    ASSERT_EQ(difference(actual, expected, inputs, run.sources), "") << what;
    if (run.divides) continue;
    const SmallKernel small =
        table->reduce_small[static_cast<std::size_t>(run.dtype)][static_cast<std::size_t>(run.op)];
    std::vector<const std::byte*> part(from.size());
    for (std::size_t at = 0; at < bytes; at += kSmallBytes) {
      for (std::size_t s = 0; s < from.size(); ++s) part[s] = from[s] + at;
      small(to + at, part.data(), run.sources, std::min(kSmallBytes, bytes - at));
    }
    ASSERT_EQ(difference(actual, expected, inputs, run.sources), "") << "small, " << what;
  }
}

template <class T, Op op>
void compare(Dtype dtype, const Inputs<T>& inputs) {
  for (int sources = 1; sources <= kMostSources; ++sources) {
    const Run undivided{dtype, op, sources, false, sources};
    ASSERT_NO_FATAL_FAILURE(
        expect_of_kernels(undivided, inputs, reduced_by_scalars<T, op>(inputs, sources, false, sources)));
    if (op != Op::avg) continue;
    // As many ranks as sources, and, where some were added before, others.
    for (const int ranks : {sources, kMostSources + 1 - sources}) {
      const Run divided{dtype, op, sources, true, ranks};
      ASSERT_NO_FATAL_FAILURE(
          expect_of_kernels(divided, inputs, reduced_by_scalars<T, op>(inputs, sources, true, ranks)));
    }
  }
}

/// Calls `f(std::type_identity<T>{}, Dtype)` for every dtype.
template <class F>
void for_each_dtype(F&& f) {
#define TUTTI_ROW(id, type, name) f(std::type_identity<type>{}, Dtype::id);
  TUTTI_DTYPES(TUTTI_ROW)
#undef TUTTI_ROW
}

template <class T, Op op>
void compare_if_it_exists(Dtype dtype, const Inputs<T>& inputs) {
  if constexpr (op_exists_for<T>(op)) {
    if (!testing::Test::HasFatalFailure()) compare<T, op>(dtype, inputs);
  }
}

template <class T>
void compare_every_op(Dtype dtype, const Inputs<T>& inputs) {
#define TUTTI_ROW(id, name, domain) compare_if_it_exists<T, Op::id>(dtype, inputs);
  TUTTI_OPS(TUTTI_ROW)
#undef TUTTI_ROW
}

TEST(Scalars, GiveTheBitsOfTheKernelsForRandomBits) {
  for_each_dtype(
      []<class T>(std::type_identity<T>, Dtype dtype) { compare_every_op<T>(dtype, random_inputs<T>(1003)); });
}

TEST(Scalars, GiveTheBitsOfTheKernelsForSpecialValues) {
  for_each_dtype([]<class T>(std::type_identity<T>, Dtype dtype) { compare_every_op<T>(dtype, special_inputs<T>()); });
}

template <class T>
void compare_products(Dtype dtype) {
  using E = Elementwise<T, Op::premul_sum>;
  using Storage = typename E::Storage;
  for (const Inputs<T>& inputs : {random_inputs<T>(1003), special_inputs<T>()}) {
    std::vector<Word<T>> factors = special_codes<T>();
    for (int i = 0; i < 8; ++i) factors.push_back(same_bits<Word<T>>(inputs[1][static_cast<std::size_t>(i)]));
    const std::vector<T>& values = inputs[0];
    for (const Word<T> code : factors) {
      const T factor = same_bits<T>(code);
      Factor bytes{};
      std::memcpy(bytes.data(), &factor, sizeof(T));
      std::vector<T> actual(values.size());
      scale_for(dtype)(reinterpret_cast<std::byte*>(actual.data()), reinterpret_cast<const std::byte*>(values.data()),
                       values.size() * sizeof(T), bytes);
      Expected<T> expected{std::vector<T>(values.size()), std::vector<bool>(values.size())};
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected.elements[i] = same_bits<T>(E::scale(same_bits<Storage>(values[i]), same_bits<Storage>(factor)));
        expected.takes_any_nan[i] = is_nan(values[i]) && is_nan(factor);
      }
      ASSERT_EQ(difference(actual, expected, inputs, 1), "") << to_string(dtype) << " times 0x" << std::hex << +code;
    }
  }
}

TEST(Scalars, MultiplyByAFactorAsPremulSumDoes) {
  for_each_dtype([]<class T>(std::type_identity<T>, Dtype dtype) {
    if constexpr (op_exists_for<T>(Op::premul_sum)) compare_products<T>(dtype);
  });
}

template <class T>
T stored(std::uint32_t word) {
  using E = Elementwise<T, Op::sum>;
  return same_bits<T>(E::store(same_bits<float>(word)));
}

TEST(Scalars, StoreTheNanOfAGpuAsANan) {
  EXPECT_EQ(stored<BFloat16>(0x7fffffff).bits, 0x7fff);
  EXPECT_EQ(stored<BFloat16>(0xffffffff).bits, 0xffff);
  EXPECT_EQ(stored<Half>(0x7fffffff).bits, 0x7fff);
  EXPECT_EQ(stored<Float8E4M3>(0x7fffffff).bits, 0x7f);
  EXPECT_EQ(stored<Float8E5M2>(0x7fffffff).bits, 0x7f);
}

/// Where a NaN has bits that are dropped, as the conversion of bfloat16.h does; otherwise min and max keep it as it is.
TEST(Scalars, StoreEveryNanOfBfloat16AsANan) {
  for (std::uint32_t upper = 0x7f80; upper <= 0xffff; ++upper) {
    if ((upper & 0x7f80U) != 0x7f80U) continue;
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const std::uint32_t word = upper << 16U | lower;
      if ((word & 0x7fffffffU) <= 0x7f800000U) continue;  // infinity
      const std::uint32_t expected = lower == 0 ? upper : BFloat16::from_float(same_bits<float>(word)).bits;
      ASSERT_EQ(stored<BFloat16>(word).bits, expected) << std::hex << word;
      ASSERT_TRUE(is_nan(stored<BFloat16>(word))) << std::hex << word;
    }
  }
}

TEST(Scalars, StoreEveryNanOfOtherNarrowFloatsAsTheirConversionDoes) {
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t upper = 0x7f80; upper <= 0x7fff; ++upper) {
      for (const std::uint32_t lower : {0x0001U, 0x1fffU, 0x2000U, 0x7fffU, 0x8000U, 0xffffU}) {
        const std::uint32_t word = sign | upper << 16U | lower;
        const auto value = same_bits<float>(word);
        ASSERT_EQ(stored<Half>(word).bits, Half::from_float(value).bits) << std::hex << word;
        ASSERT_EQ(stored<Float8E4M3>(word).bits, Float8E4M3::from_float(value).bits) << std::hex << word;
        ASSERT_EQ(stored<Float8E5M2>(word).bits, Float8E5M2::from_float(value).bits) << std::hex << word;
      }
    }
  }
}

}  // namespace
}  // namespace tutti
