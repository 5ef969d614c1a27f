// SPDX-License-Identifier: Apache-2.0
// Small kernels give the bits of the general ones, in every instruction set; and the general ones stream to the
// destinations that they are told.
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "impl/reduce/kernels_isa.h"
#include "impl/schedule/plan.h"
#include "impl/types/names.h"

namespace tutti {
namespace {

constexpr int kBytes = 48;

std::vector<std::vector<std::byte>> random_sources(std::mt19937& random, std::size_t bytes) {
  std::vector<std::vector<std::byte>> sources(kMostShortcutSources, std::vector<std::byte>(bytes));
  // Small positive integers in every format's low bits and high bits alike: no NaN, whose payload may differ.
  for (auto& source : sources) {
    for (std::byte& byte : source) byte = static_cast<std::byte>(random() % 60);
  }
  return sources;
}

TEST(SmallKernel, GivesTheBitsOfTheGeneralOne) {
  std::mt19937 random(1);
  for (const KernelTable* table : runnable_kernels()) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(kDtypes); ++d) {
      for (std::size_t o = 0; o < static_cast<std::size_t>(kOps); ++o) {
        const SmallKernel small = table->reduce_small[d][o];
        if (small == nullptr) continue;
        const std::size_t element = size_of(static_cast<Dtype>(d));
        for (std::size_t bytes = element; bytes <= kBytes; bytes += element) {
          const auto sources = random_sources(random, bytes);
          std::array<const std::byte*, kMostShortcutSources> pointers;
          for (std::size_t i = 0; i < pointers.size(); ++i) pointers[i] = sources[i].data();
          for (const int count : {1, 2, 3, kMostShortcutSources}) {
            std::vector<std::byte> expected(bytes + 1, std::byte{0xee}), actual = expected;
            std::byte* destination = expected.data();
            table->reduce[d][o]({.destinations = &destination,
                                 .destination_count = 1,
                                 .sources = pointers.data(),
                                 .source_count = count,
                                 .bytes = bytes});
            small(actual.data(), pointers.data(), count, bytes);
            ASSERT_EQ(actual, expected) << table->isa << " dtype " << to_string(static_cast<Dtype>(d)) << " op "
                                        << to_string(static_cast<Op>(o)) << " bytes " << bytes << " sources " << count;
          }
        }
      }
    }
  }
}

TEST(Kernel, StreamsToAnyChoiceOfDestinations) {
  constexpr std::size_t kElements = 1000;
  std::vector<float> a(kElements, 1), b(kElements, 2);
  const std::array<const std::byte*, 2> sources{reinterpret_cast<const std::byte*>(a.data()),
                                                reinterpret_cast<const std::byte*>(b.data())};
  for (const KernelTable* table : runnable_kernels()) {
    for (std::uint64_t streamed = 0; streamed < 8; ++streamed) {
      std::array<std::vector<float>, 3> outputs;
      std::array<std::byte*, 3> destinations;
      for (std::size_t i = 0; i < 3; ++i) {
        outputs[i].assign(kElements + 20, 0);
        destinations[i] = reinterpret_cast<std::byte*>(outputs[i].data() + 3 * i);
      }
      table->reduce[static_cast<std::size_t>(Dtype::f32)][static_cast<std::size_t>(Op::sum)](
          {.destinations = destinations.data(),
           .destination_count = 3,
           .sources = sources.data(),
           .source_count = 2,
           .bytes = kElements * sizeof(float),
           .streamed = streamed});
      for (std::size_t i = 0; i < 3; ++i) {
        std::vector<float> expected(kElements + 20, 0);
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(3 * i), kElements, 3.0F);
        ASSERT_EQ(outputs[i], expected) << table->isa << " streamed " << streamed << " destination " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tutti
