// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/places.h"

#include <algorithm>
#include <array>

#include "harness/statistics/splitmix.h"

namespace tutti::harness::measure {
namespace {

constexpr std::size_t kBytesOfPlace = 64;

std::size_t lines_of(std::size_t bytes) { return (bytes + kBytesOfPlace - 1) / kBytesOfPlace; }

}  // namespace

std::size_t places_in(std::size_t bytes) { return std::min(kMostPlaces, lines_of(bytes)); }

void poison_places(std::span<std::byte> output, const Poisoning& how) {
  const std::size_t lines = lines_of(output.size()), places = places_in(output.size());
  SplitMix random(how.draw);
  std::array<std::span<std::byte>, kMostPlaces> chosen;
  for (std::size_t place = 0; place < places; ++place) {
    const std::size_t first = place * lines / places, end = (place + 1) * lines / places;
    const std::size_t at = (first + random.below(end - first)) * kBytesOfPlace;
    chosen[place] = output.subspan(at, std::min(kBytesOfPlace, output.size() - at));
  }
  how.kind.fill_poison(std::span(chosen).first(places), how.salt);
  if (!how.flushes) return;
  for (const std::span<std::byte>& line : std::span(chosen).first(places)) how.kind.flush(line);
}

}  // namespace tutti::harness::measure
