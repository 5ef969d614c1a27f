// SPDX-License-Identifier: Apache-2.0
// Whether thread blocks of one gpu touch the same chunk without an order, one of them to write it.
#pragma once

#include <vector>

#include "harness/exchange/events.h"

namespace tutti::harness::exchange {

/// A chunk of a gpu. In place the chunks of two buffers are the same ones.
struct Place {
  Buffer buffer = Buffer::input;
  int chunk = 0;
};

/// Where chunk `index` of `chunks` lies. In place what both buffers share is the output's.
[[nodiscard]] Place place_of(const MscclFile& file, int gpu, const Chunks& chunks, int index);

/// `order`: all events, each behind those that it waits for. Errors: refuted naming both steps.
[[nodiscard]] Status check_races(const Events& events, const std::vector<int>& order);

}  // namespace tutti::harness::exchange
