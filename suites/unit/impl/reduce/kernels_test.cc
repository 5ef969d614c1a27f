// SPDX-License-Identifier: Apache-2.0
// Every kernel of every instruction set that this CPU runs, against the plain scalar loop of reference.h, bit for bit.
// Every buffer lies between sentinels, and sources must come out unchanged.
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
#include "suites/unit/impl/reduce/reference.h"

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

/// Sizes around every width of the cascade and group, and numbers of sources around those with an instance of their
/// own.
struct Shapes {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> source_counts;
};

template <class T>
void run_shapes(Dtype dtype, Op op, const Shapes& shapes) {
  std::mt19937 random(7);
  for (const std::size_t count : shapes.counts) {
    for (const std::size_t source_count : shapes.source_counts) {
      std::vector<std::vector<T>> inputs(source_count, std::vector<T>(count));
      std::vector<std::vector<std::byte>> sources;
      for (auto& input : inputs) {
        for (T& element : input) element = random_element<T>(random);
        sources.push_back(bytes_of(input));
      }
      if (op == Op::none) {
        ASSERT_NO_FATAL_FAILURE(run_all_ways(dtype, op, true, sources, sources[0]));
        continue;
      }
      for (const bool is_final : {false, true}) {
        if (is_final && combining(op) != Op::sum) continue;  // means nothing to the others
        std::vector<T> expected;
        for (std::size_t i = 0; i < count; ++i) {
          std::vector<T> column;
          for (const auto& input : inputs) column.push_back(input[i]);
          expected.push_back(reference_reduced<T>(op, op == Op::avg && is_final, column));
        }
        ASSERT_NO_FATAL_FAILURE(run_all_ways(dtype, op, is_final, sources, bytes_of(expected)));
      }
    }
  }
}

struct Pair {
  Dtype dtype;
  Op op;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << to_string(pair.dtype) << " " << to_string(pair.op); }
std::string pair_name(const testing::TestParamInfo<Pair>& info) {
  return fmt::format("{}_{}", to_string(info.param.dtype), to_string(info.param.op));
}
std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (const Dtype dtype : known_dtypes()) {
    for (const Op op : all_ops()) {
      if (op_exists(op, dtype)) pairs.push_back({dtype, op});
    }
  }
  return pairs;
}

class EveryKernel : public testing::TestWithParam<Pair> {};
TEST_P(EveryKernel, EqualsTheScalarLoopBitForBit) {
  const auto [dtype, op] = GetParam();
  visit_dtype(dtype, [dtype = dtype, op = op]<class T>(std::type_identity<T>) {
    run_shapes<T>(dtype, op, {{0, 1, 2, 3, 5, 7, 15, 17, 31, 33, 63, 127, 129, 257, 511}, {2, 3, 5}});
  });
}
INSTANTIATE_TEST_SUITE_P(Pairs, EveryKernel, testing::ValuesIn(all_pairs()), pair_name);

/// Sums and the minima and maxima of float have instances for the usual numbers of sources and destinations.
TEST(Kernels, OfManySourcesEqualTheScalarLoopBitForBit) {
  const Shapes shapes{{1, 2, 16, 64, 129, 256, 511, 1023}, {1, 2, 3, 4, 5, 17}};
  run_shapes<float>(Dtype::f32, Op::sum, shapes);
  run_shapes<float>(Dtype::f32, Op::max, shapes);
  run_shapes<BFloat16>(Dtype::bf16, Op::sum, shapes);
  run_shapes<Half>(Dtype::f16, Op::sum, shapes);
  run_shapes<double>(Dtype::f64, Op::sum, shapes);
  run_shapes<std::uint32_t>(Dtype::u32, Op::sum, shapes);
  run_shapes<Float8E4M3>(Dtype::f8e4m3, Op::avg, shapes);
}

TEST(Kernels, CopyEveryBit) {
  run_shapes<std::uint8_t>(Dtype::u8, Op::none,
                           {{0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 127, 129, 256, 511, 1023}, {1}});
  run_shapes<std::int64_t>(Dtype::f64, Op::none, {{1, 17, 511}, {1}});
}

template <class T>
void sum_into_any_source(Dtype dtype) {
  constexpr std::size_t kCount = 1023;
  std::mt19937 random(11);
  for (const std::size_t source_count : {1, 2, 3, 4, 5, 17}) {
    std::vector<std::vector<T>> inputs(source_count, std::vector<T>(kCount));
    for (auto& input : inputs) std::generate(input.begin(), input.end(), [&] { return random_element<T>(random); });
    std::vector<T> expected = inputs[0];
    for (std::size_t s = 1; s < source_count; ++s) {
      for (std::size_t i = 0; i < kCount; ++i) expected[i] = static_cast<T>(expected[i] + inputs[s][i]);
    }
    for (const KernelTable* table : runnable_kernels()) {
      for (std::size_t in_place = 0; in_place < source_count; ++in_place) {
        for (const bool streams : {false, true}) {
          auto buffers = inputs;
          std::vector<T> other(kCount);
          std::vector<const std::byte*> from;
          for (const auto& buffer : buffers) from.push_back(reinterpret_cast<const std::byte*>(buffer.data()));
          std::byte* const to[] = {reinterpret_cast<std::byte*>(other.data()),
                                   reinterpret_cast<std::byte*>(buffers[in_place].data()),
                                   reinterpret_cast<std::byte*>(buffers[0].data())};
          kernel_for_isa(*table, dtype, Op::sum)({.destinations = to,
                                                  .destination_count = in_place == 0 ? 2 : 3,
                                                  .sources = from.data(),
                                                  .source_count = static_cast<int>(source_count),
                                                  .bytes = kCount * sizeof(T),
                                                  .streamed = streams ? kAllDestinations : 0});
          ASSERT_EQ(other, expected) << table->isa;
          ASSERT_EQ(buffers[in_place], expected) << table->isa << ", source " << in_place << " of " << source_count;
          ASSERT_EQ(buffers[0], expected) << table->isa;
        }
      }
    }
  }
}

TEST(Kernels, ADestinationMayBeAnySource) {
  ASSERT_NO_FATAL_FAILURE(sum_into_any_source<float>(Dtype::f32));
  ASSERT_NO_FATAL_FAILURE(sum_into_any_source<std::uint8_t>(Dtype::u8));
}

TEST(Kernels, TheBestInstructionSetOfThisCpuIsChosen) {
  std::string expected = "baseline";
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) expected = "avx2";
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

}  // namespace
}  // namespace tutti
