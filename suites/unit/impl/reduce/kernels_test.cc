// SPDX-License-Identifier: Apache-2.0
// Every kernel of every instruction set that this CPU runs, against a plain scalar loop written here, bit for bit; and
// the corners of the arithmetic with literals. Every buffer lies between sentinels, and sources must come out
// unchanged.
#include "impl/reduce/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "impl/reduce/kernels_isa.h"

namespace tutti {
namespace {

constexpr std::byte kSentinel{0xa5};
constexpr std::size_t kMargin = 64;

/// `bytes` bytes at an address of the given remainder modulo 64, between sentinels.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment) : memory_(bytes + 3 * kMargin + 64, kSentinel), bytes_(bytes) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = (64 - base % 64) % 64 + kMargin + misalignment;
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + start_; }
  [[nodiscard]] bool has_its_sentinels() const {
    const auto start = memory_.begin() + static_cast<std::ptrdiff_t>(start_);
    const auto is_sentinel = [](std::byte b) { return b == kSentinel; };
    return std::all_of(memory_.begin(), start, is_sentinel) &&
           std::all_of(start + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_sentinel);
  }

 private:
  std::vector<std::byte> memory_;
  std::size_t bytes_;
  std::size_t start_ = 0;
};

float widened(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

/// The nearer of the two neighbours of a finite value, the even one at a tie; not the trick with 0x7fff.
std::uint16_t rounded(float value) {
  const auto towards_zero = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
  const auto away = static_cast<std::uint16_t>(towards_zero + 1);
  const double below = std::abs(static_cast<double>(value) - static_cast<double>(widened(towards_zero)));
  const double above = std::abs(static_cast<double>(widened(away)) - static_cast<double>(value));
  if (below == above) return towards_zero % 2 == 0 ? towards_zero : away;
  return below < above ? towards_zero : away;
}

float expected_element(Op op, bool divides, const std::vector<float>& in) {
  float result = in[0];
  for (std::size_t s = 1; s < in.size(); ++s) result = op == Op::max ? std::max(result, in[s]) : result + in[s];
  return divides ? result / static_cast<float>(in.size()) : result;
}

std::int32_t expected_element(Op op, bool divides, const std::vector<std::int32_t>& in) {
  std::int64_t result = in[0];
  for (std::size_t s = 1; s < in.size(); ++s) {
    result = op == Op::max ? std::max<std::int64_t>(result, in[s]) : result + in[s];
  }
  result = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(result)));
  return static_cast<std::int32_t>(divides ? result / static_cast<std::int64_t>(in.size()) : result);
}

BFloat16 expected_element(Op op, bool divides, const std::vector<BFloat16>& in) {
  std::vector<float> wide;
  for (const BFloat16 value : in) wide.push_back(widened(value.bits));
  return {rounded(expected_element(op, divides, wide))};
}

template <class T>
T random_element(std::mt19937& random) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::int32_t>(random());
  } else {
    // Both signs, exponents -4 to 3, any mantissa: sums lose bits, and in another order they lose others.
    const auto exponent = static_cast<std::uint32_t>(123 + random() % 8);
    const std::uint32_t word = (static_cast<std::uint32_t>(random()) & 0x807fffffU) | (exponent << 23U);
    if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(word);
    if constexpr (std::is_same_v<T, BFloat16>) return {static_cast<std::uint16_t>(word >> 16U)};
  }
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

bool equal(const std::byte* a, const std::vector<std::byte>& b) {
  return b.empty() || std::memcmp(a, b.data(), b.size()) == 0;
}

/// Remainders modulo 64 of destination j and source s: all aligned, none, a float's worth, all different.
struct Misalignment {
  std::size_t destination, destination_stride, source, source_stride;
};
constexpr Misalignment kMisalignments[] = {{0, 0, 0, 0}, {1, 0, 3, 0}, {4, 0, 0, 4}, {36, 2, 62, 0}, {3, 5, 1, 7}};

/// One call: its kernel, inputs and what must come out.
struct Case {
  const KernelTable& table;
  Dtype dtype;
  Op op;
  const std::vector<std::vector<std::byte>>& sources;
  const std::vector<std::byte>& expected;
  int destination_count;
  bool is_final;
  bool streams;
};

/// Runs the case at one misalignment; what is wrong, or an empty string.
std::string run(const Case& c, const Misalignment& misalignment) {
  const std::size_t bytes = c.expected.size();
  std::vector<Buffer> sources, destinations;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t s = 0; s < c.sources.size(); ++s) {
    sources.emplace_back(bytes, (misalignment.source + s * misalignment.source_stride) % 64);
  }
  for (int d = 0; d < c.destination_count; ++d) {
    const auto j = static_cast<std::size_t>(d);
    destinations.emplace_back(bytes, (misalignment.destination + j * misalignment.destination_stride) % 64);
  }
  for (std::size_t s = 0; s < sources.size(); ++s) {
    if (bytes != 0) std::memcpy(sources[s].data(), c.sources[s].data(), bytes);
    from.push_back(sources[s].data());
  }
  for (Buffer& destination : destinations) to.push_back(destination.data());
  kernel_for_isa(c.table, c.dtype, c.op)({.destinations = to.data(),
                                          .destination_count = c.destination_count,
                                          .sources = from.data(),
                                          .source_count = static_cast<int>(from.size()),
                                          .bytes = bytes,
                                          .ranks = static_cast<int>(from.size()),
                                          .is_final = c.is_final,
                                          .streamed = c.streams ? kAllDestinations : 0});
  for (std::size_t d = 0; d < destinations.size(); ++d) {
    if (!equal(to[d], c.expected)) return fmt::format("destination {} is wrong", d);
    if (!destinations[d].has_its_sentinels()) return fmt::format("written outside destination {}", d);
  }
  for (std::size_t s = 0; s < sources.size(); ++s) {
    if (!equal(from[s], c.sources[s]) || !sources[s].has_its_sentinels()) return fmt::format("source {} changed", s);
  }
  return {};
}

std::string describe(const Case& c, std::size_t misalignment) {
  return fmt::format("{} {} {}: {} bytes, {} sources, {} destinations, final {}, streams {}, misalignment {}",
                     c.table.isa, to_string(c.dtype), to_string(c.op), c.expected.size(), c.sources.size(),
                     c.destination_count, c.is_final, c.streams, misalignment);
}

/// All that the inputs and the expected output do not depend on.
void run_all_ways(Dtype dtype, Op op, bool is_final, const std::vector<std::vector<std::byte>>& sources,
                  const std::vector<std::byte>& expected) {
  for (const KernelTable* table : runnable_kernels()) {
    for (const int destinations : {1, 2, 3}) {
      for (const bool streams : {false, true}) {
        for (std::size_t m = 0; m < std::size(kMisalignments); ++m) {
          const Case c{*table, dtype, op, sources, expected, destinations, is_final, streams};
          const std::string wrong = run(c, kMisalignments[m]);
          ASSERT_TRUE(wrong.empty()) << wrong << ": " << describe(c, m);
        }
      }
    }
  }
}

template <class T>
void run_all_shapes(Dtype dtype) {
  std::mt19937 random(7);
  for (const std::size_t count : {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 127, 129, 256, 511, 1023}) {
    for (const std::size_t source_count : {1, 2, 3, 4, 5, 17}) {
      std::vector<std::vector<T>> inputs(source_count, std::vector<T>(count));
      std::vector<std::vector<std::byte>> sources;
      for (auto& input : inputs) {
        for (T& element : input) element = random_element<T>(random);
        sources.push_back(bytes_of(input));
      }
      for (const Op op : all_ops()) {
        for (const bool is_final : {false, true}) {
          std::vector<T> expected;
          for (std::size_t i = 0; i < count; ++i) {
            std::vector<T> column;
            for (const auto& input : inputs) column.push_back(input[i]);
            expected.push_back(expected_element(op, op == Op::avg && is_final, column));
          }
          ASSERT_NO_FATAL_FAILURE(run_all_ways(dtype, op, is_final, sources, bytes_of(expected)));
        }
      }
      if (source_count == 1) {
        ASSERT_NO_FATAL_FAILURE(run_all_ways(dtype, Op::none, true, sources, sources[0]));
      }
    }
  }
}

/// The result of one reduction of single values by every instruction set; fails if they differ.
template <class T>
T reduced(Dtype dtype, Op op, const std::vector<T>& values, std::size_t count) {
  std::vector<std::vector<T>> inputs;
  std::vector<const std::byte*> from;
  for (const T value : values) inputs.emplace_back(count, value);
  for (const auto& input : inputs) from.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<T> first;
  for (const KernelTable* table : runnable_kernels()) {
    std::vector<T> output(count);
    auto* const to = reinterpret_cast<std::byte*>(output.data());
    kernel_for_isa(*table, dtype, op)({.destinations = &to,
                                       .destination_count = 1,
                                       .sources = from.data(),
                                       .source_count = static_cast<int>(from.size()),
                                       .bytes = count * sizeof(T),
                                       .ranks = static_cast<int>(from.size()),
                                       .is_final = true});
    if (first.empty()) first = output;
    for (const T& element : output) {
      EXPECT_EQ(std::memcmp(&element, first.data(), sizeof(T)), 0) << table->isa << ", " << count << " elements";
    }
  }
  return first[0];
}

}  // namespace

TEST(Kernels, FloatEqualsTheScalarLoopBitForBit) { run_all_shapes<float>(Dtype::f32); }
TEST(Kernels, Int32EqualsTheScalarLoopBitForBit) { run_all_shapes<std::int32_t>(Dtype::i32); }
TEST(Kernels, BFloat16EqualsTheScalarLoopBitForBit) { run_all_shapes<BFloat16>(Dtype::bf16); }

TEST(Kernels, ADestinationMayBeAnySource) {
  constexpr std::size_t kCount = 1023;
  std::mt19937 random(11);
  for (const std::size_t source_count : {1, 2, 3, 4, 5, 17}) {
    std::vector<std::vector<float>> inputs(source_count, std::vector<float>(kCount));
    for (auto& input : inputs) std::generate(input.begin(), input.end(), [&] { return random_element<float>(random); });
    std::vector<float> expected = inputs[0];
    for (std::size_t s = 1; s < source_count; ++s) {
      for (std::size_t i = 0; i < kCount; ++i) expected[i] += inputs[s][i];
    }
    for (const KernelTable* table : runnable_kernels()) {
      for (std::size_t in_place = 0; in_place < source_count; ++in_place) {
        for (const bool streams : {false, true}) {
          auto buffers = inputs;
          std::vector<float> other(kCount);
          std::vector<const std::byte*> from;
          for (const auto& buffer : buffers) from.push_back(reinterpret_cast<const std::byte*>(buffer.data()));
          std::byte* const to[] = {reinterpret_cast<std::byte*>(other.data()),
                                   reinterpret_cast<std::byte*>(buffers[in_place].data()),
                                   reinterpret_cast<std::byte*>(buffers[0].data())};
          kernel_for_isa(*table, Dtype::f32, Op::sum)({.destinations = to,
                                                       .destination_count = in_place == 0 ? 2 : 3,
                                                       .sources = from.data(),
                                                       .source_count = static_cast<int>(source_count),
                                                       .bytes = kCount * sizeof(float),
                                                       .streamed = streams ? kAllDestinations : 0});
          ASSERT_EQ(other, expected) << table->isa;
          ASSERT_EQ(buffers[in_place], expected) << table->isa << ", source " << in_place << " of " << source_count;
          ASSERT_EQ(buffers[0], expected) << table->isa;
        }
      }
    }
  }
}

TEST(Kernels, NanPropagatesThroughMaxFromAnySource) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const BFloat16 narrow_nan{0x7fc0}, narrow_infinity{0x7f80};
  for (const std::size_t count : {1, 3, 16, 200}) {
    for (const std::size_t position : {0, 1, 2, 4}) {
      std::vector<float> values = {1, -2, 3, std::numeric_limits<float>::infinity(), 5};
      values[position] = nan;
      EXPECT_TRUE(std::isnan(reduced(Dtype::f32, Op::max, values, count))) << position;
      std::vector<BFloat16> narrow(5, narrow_infinity);
      narrow[position] = narrow_nan;
      EXPECT_EQ(reduced(Dtype::bf16, Op::max, narrow, count).bits, narrow_nan.bits) << position;
      EXPECT_EQ(reduced(Dtype::bf16, Op::sum, narrow, count).bits, narrow_nan.bits) << position;
    }
  }
}

TEST(Kernels, EveryNanOfBFloat16StaysANan) {
  for (unsigned bits = 0x7f81; bits <= 0x7fff; ++bits) {
    for (const unsigned sign : {0U, 0x8000U}) {
      const BFloat16 nan{static_cast<std::uint16_t>(bits | sign)};
      for (const Op op : all_ops()) {
        const unsigned result = reduced<BFloat16>(Dtype::bf16, op, {BFloat16{0x3f80}, nan}, 33).bits;
        EXPECT_GT(result & 0x7fffU, 0x7f80U) << nan.bits << " " << to_string(op);
      }
    }
  }
  const BFloat16 infinity{0x7f80}, minus_infinity{0xff80};
  EXPECT_GT(reduced<BFloat16>(Dtype::bf16, Op::sum, {infinity, minus_infinity}, 33).bits & 0x7fffU, 0x7f80U);
}

TEST(Kernels, MaxOfZerosIsPositiveInEitherOrder) {
  EXPECT_FALSE(std::signbit(reduced<float>(Dtype::f32, Op::max, {0.0F, -0.0F}, 40)));
  EXPECT_FALSE(std::signbit(reduced<float>(Dtype::f32, Op::max, {-0.0F, 0.0F}, 40)));
  EXPECT_TRUE(std::signbit(reduced<float>(Dtype::f32, Op::max, {-0.0F, -0.0F}, 40)));
}

TEST(Kernels, Int32Wraps) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::size_t count : {1, 40}) {
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::sum, {kMost, 1}, count), kLeast);
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {kMost, kMost}, count), -1);  // -2 / 2
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::max, {kLeast, kMost, 0}, count), kMost);
  }
}

TEST(Kernels, Int32AverageIsTruncatedTowardsZero) {
  for (const std::size_t count : {1, 2, 4, 8, 40}) {
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {-3, -4}, count), -3);
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {3, 4}, count), 3);
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {2147483647, 0, 0}, count), 715827882);
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {-2147483647 - 1, 0, 0}, count), -715827882);
    EXPECT_EQ(reduced<std::int32_t>(Dtype::i32, Op::avg, {-2147483647 - 1}, count), -2147483647 - 1);
  }
}

TEST(Kernels, BFloat16RoundsOnceOnTheStore) {
  // 1 + 2^-8 + 2^-8: rounded after the first addition it would be 1 (a tie, to even), and 1 again after the second.
  const BFloat16 one{0x3f80}, half_a_unit{0x3b80}, next_after_one{0x3f81};
  for (const std::size_t count : {1, 2, 40}) {
    EXPECT_EQ(reduced<BFloat16>(Dtype::bf16, Op::sum, {one, half_a_unit, half_a_unit}, count).bits,
              next_after_one.bits);
    EXPECT_EQ(reduced<BFloat16>(Dtype::bf16, Op::sum, {one, half_a_unit}, count).bits, one.bits);
    EXPECT_EQ(reduced<BFloat16>(Dtype::bf16, Op::sum, {next_after_one, half_a_unit}, count).bits, 0x3f82);
  }
}

TEST(Kernels, FloatAverageIsTheSumDividedByTheRanks) {
  // 10 / 3 is 0x1.aaaaaap+1; 10 times the nearest float to 1/3 is 0x1.aaaaacp+1.
  EXPECT_EQ(reduced<float>(Dtype::f32, Op::avg, {5, 4, 1}, 40), 0x1.aaaaaap+1F);
}

TEST(Kernels, TheBestInstructionSetOfThisCpuIsChosen) {
  std::string expected = "baseline";
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) expected = "avx2";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    expected = "avx512";
  }
#endif
  EXPECT_EQ(kernel_isa(), expected);
  EXPECT_EQ(runnable_kernels().front()->isa, expected);
  EXPECT_STREQ(runnable_kernels().back()->isa, "baseline");
  EXPECT_EQ(kernel_for(Dtype::i32, Op::max), kernel_for_isa(*runnable_kernels().front(), Dtype::i32, Op::max));
}

}  // namespace tutti
