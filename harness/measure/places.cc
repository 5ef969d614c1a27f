// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/places.h"

#include <algorithm>

#include "harness/machine/flush.h"
#include "harness/statistics/splitmix.h"
#include "harness/verify/buffers.h"

namespace tutti::harness::measure {
namespace {

constexpr std::size_t kBytesOfPlace = 64;

std::size_t lines_of(std::size_t bytes) { return (bytes + kBytesOfPlace - 1) / kBytesOfPlace; }

}  // namespace

std::size_t places_in(std::size_t bytes) { return std::min(kMostPlaces, lines_of(bytes)); }

void poison_places(std::span<std::byte> output, const Poisoning& how) {
  const std::size_t lines = lines_of(output.size()), places = places_in(output.size());
  SplitMix random(how.draw);
  for (std::size_t place = 0; place < places; ++place) {
    const std::size_t first = place * lines / places, end = (place + 1) * lines / places;
    const std::size_t at = (first + random.below(end - first)) * kBytesOfPlace;
    const std::span line = output.subspan(at, std::min(kBytesOfPlace, output.size() - at));
    fill_poison(line, how.salt);
    if (how.flushes) flush(line);
  }
}

}  // namespace tutti::harness::measure
