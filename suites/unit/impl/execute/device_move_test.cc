// SPDX-License-Identifier: Apache-2.0
// The part of each thread of a team in a MOVE, all parts together against the plain scalar loop of reduce/reference.h,
// bit for bit. Every destination lies between sentinels, and sources must come out unchanged.
#include "impl/execute/device_move.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "suites/unit/impl/reduce/reference.h"

namespace tutti {
namespace {

constexpr std::byte kAround{0xa5};
constexpr std::size_t kAroundBytes = 64;

/// Elements at an address of the given remainder modulo 16, between sentinels.
template <class T>
class Placed {
 public:
  Placed(const std::vector<T>& elements, std::size_t remainder)
      : memory_(elements.size() * sizeof(T) + 3 * kAroundBytes, kAround), bytes_(elements.size() * sizeof(T)) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data()) % kAroundBytes;
    begin_ = kAroundBytes + (kAroundBytes - base) % kAroundBytes + remainder;
    if (bytes_ > 0) std::memcpy(data(), elements.data(), bytes_);
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + begin_; }
  [[nodiscard]] const std::byte* data() const { return memory_.data() + begin_; }
  [[nodiscard]] bool holds(const std::vector<T>& elements) const {
    const auto is_around = [](std::byte one) { return one == kAround; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(memory_.begin(), begin, is_around) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_around) &&
           (bytes_ == 0 || std::memcmp(data(), elements.data(), bytes_) == 0);
  }

 private:
  std::vector<std::byte> memory_;
  std::size_t bytes_;
  std::size_t begin_ = 0;
};

/// A MOVE: how many, where, and by how many threads.
struct TeamMove {
  std::size_t count;
  std::size_t sources = 1;
  std::size_t destinations = 1;
  int threads = 1;
  std::size_t remainder = 0;  ///< of the addresses of odd operands, in elements
  bool is_final = false;
  int scaled = -1;
};

std::string text_of(Dtype dtype, Op op, const TeamMove& move) {
  return fmt::format("{} {}: {} elements, {} sources, {} destinations, {} threads, remainder {}, final {}, scaled {}",
                     to_string(dtype), to_string(op), move.count, move.sources, move.destinations, move.threads,
                     move.remainder, move.is_final, move.scaled);
}

/// One element of each source.
template <class T>
std::vector<T> column_of(const std::vector<std::vector<T>>& sources, std::size_t element) {
  std::vector<T> column;
  for (const std::vector<T>& source : sources) column.push_back(source[element]);
  return column;
}

template <class T>
T multiplied(T value, T factor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(factor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return value * factor;
  } else {
    return reference_code<T>(static_cast<float>(reference_value(value)) * static_cast<float>(reference_value(factor)));
  }
}

template <class T>
void expect_as_reference(Dtype dtype, Op op, const TeamMove& one, std::mt19937& random) {
  SCOPED_TRACE(text_of(dtype, op, one));
  std::vector<std::vector<T>> sources(one.sources, std::vector<T>(one.count));
  for (auto& source : sources) {
    for (T& element : source) element = random_element<T>(random);
  }
  const T factor = random_element<T>(random);
  std::vector<T> expected(one.count);
  for (std::size_t e = 0; e < one.count; ++e) {
    std::vector<T> column = column_of(sources, e);
    if (one.scaled >= 0)
      column[static_cast<std::size_t>(one.scaled)] = multiplied(column[static_cast<std::size_t>(one.scaled)], factor);
    expected[e] = op == Op::none ? column[0] : reference_reduced(op, one.is_final && op == Op::avg, column);
  }
  std::vector<Placed<T>> from, to;
  std::vector<const std::byte*> source_addresses;
  std::vector<std::byte*> destination_addresses;
  for (std::size_t i = 0; i < one.sources; ++i) from.emplace_back(sources[i], i % 2 * one.remainder * sizeof(T));
  for (std::size_t i = 0; i < one.destinations; ++i) {
    to.emplace_back(std::vector<T>(one.count), (i + 1) % 2 * one.remainder * sizeof(T));
  }
  for (const Placed<T>& source : from) source_addresses.push_back(source.data());
  for (Placed<T>& destination : to) destination_addresses.push_back(destination.data());
  DeviceMove move{.destinations = destination_addresses.data(),
                  .sources = source_addresses.data(),
                  .destination_count = static_cast<int>(one.destinations),
                  .source_count = static_cast<int>(one.sources),
                  .bytes = static_cast<std::int64_t>(one.count * sizeof(T)),
                  .ranks = static_cast<int>(one.sources),
                  .is_final = one.is_final,
                  .scaled = one.scaled};
  std::memcpy(&move.factor, &factor, sizeof factor);
  for (int thread = one.threads - 1; thread >= 0; --thread) device_move_for(dtype, op)(move, thread, one.threads);
  for (const Placed<T>& destination : to) EXPECT_TRUE(destination.holds(expected));
  for (std::size_t i = 0; i < one.sources; ++i) EXPECT_TRUE(from[i].holds(sources[i])) << "source " << i << " changed";
}

std::vector<Op> ops_with_none() {
  std::vector<Op> ops = all_ops();
  ops.push_back(Op::none);
  return ops;
}

/// Around a pack of 16 bytes of each width, and more of them than threads.
constexpr std::size_t kMoveCounts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 1023};

TEST(DeviceMove, IsThePlainLoopForEveryDtypeAndOp) {
  std::mt19937 random(1);
  for (const Dtype dtype : known_dtypes()) {
    for (const Op op : ops_with_none()) {
      if (!op_exists(op, dtype)) continue;
      visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
        for (const std::size_t count : kMoveCounts) {
          for (const std::size_t sources : {1U, 2U, 5U}) {
            const std::size_t read = op == Op::none ? 1 : sources;
            for (const std::size_t remainder : {0U, 1U}) {
              expect_as_reference<T>(dtype, op,
                                     {.count = count,
                                      .sources = read,
                                      .destinations = 1 + count % 3,
                                      .threads = 1 + static_cast<int>(sources) % 3,
                                      .remainder = remainder},
                                     random);
            }
          }
        }
      });
      if (HasFailure()) return;
    }
  }
}

TEST(DeviceMove, DividesWhereAnAvgIsFinal) {
  std::mt19937 random(2);
  for (const Dtype dtype : all_dtypes()) {
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      for (const std::size_t sources : {1U, 3U, 8U}) {
        for (const std::size_t count : {1U, 17U, 130U}) {
          for (const std::size_t remainder : {0U, 1U}) {
            expect_as_reference<T>(
                dtype, Op::avg,
                {.count = count, .sources = sources, .threads = 2, .remainder = remainder, .is_final = true}, random);
          }
        }
      }
    });
  }
}

TEST(DeviceMove, MultipliesTheOneSourceOfAPremulSumAlsoWhereItIsAlone) {
  std::mt19937 random(3);
  for (const Dtype dtype : all_dtypes()) {
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      for (const int scaled : {0, 1, 2}) {
        for (const std::size_t count : {1U, 17U, 130U}) {
          const auto sources = static_cast<std::size_t>(scaled) + 1;
          expect_as_reference<T>(
              dtype, Op::premul_sum,
              {.count = count, .sources = sources, .threads = 2, .remainder = count % 2, .scaled = scaled}, random);
        }
      }
    });
  }
}

TEST(DeviceMove, MayHaveManyAddresses) {
  std::mt19937 random(4);
  expect_as_reference<float>(Dtype::f32, Op::sum, {.count = 100, .sources = 150, .destinations = 90, .threads = 3},
                             random);
}

TEST(DeviceMove, WritesItsOwnSource) {
  std::vector<float> a{1, 2, 3, 4, 5, 6, 7}, b{10, 20, 30, 40, 50, 60, 70};
  std::byte* const destination = reinterpret_cast<std::byte*>(b.data());
  const std::byte* const sources[] = {reinterpret_cast<std::byte*>(a.data()), destination};
  const DeviceMove move{
      .destinations = &destination, .sources = sources, .destination_count = 1, .source_count = 2, .bytes = 28};
  for (const int thread : {1, 0}) device_move_for(Dtype::f32, Op::sum)(move, thread, 2);
  EXPECT_EQ(b, (std::vector<float>{11, 22, 33, 44, 55, 66, 77}));
}

/// A NaN with a payload, of half, bfloat16 and float.
TEST(DeviceMove, ACopyKeepsEveryBit) {
  const std::vector<std::uint32_t> bits{0x7fa00001, 0xffc12345, 0x7c017e01, 0xfc01fe01, 0x7f817f81, 0x80000000};
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8e5m2}) {
    for (const Op op : {Op::sum, Op::max, Op::avg, Op::premul_sum, Op::none}) {
      std::vector<std::uint32_t> copied(bits.size());
      std::byte* const destination = reinterpret_cast<std::byte*>(copied.data());
      const auto* const source = reinterpret_cast<const std::byte*>(bits.data());
      device_move_for(dtype, op)({.destinations = &destination,
                                  .sources = &source,
                                  .destination_count = 1,
                                  .source_count = 1,
                                  .bytes = static_cast<std::int64_t>(bits.size() * sizeof(std::uint32_t))},
                                 0, 1);
      EXPECT_EQ(copied, bits) << to_string(dtype) << " " << to_string(op);
    }
  }
}

}  // namespace
}  // namespace tutti
