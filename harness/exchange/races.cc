// SPDX-License-Identifier: Apache-2.0
// Each event has a clock: how far every thread block of one gpu has come before it. Order is followed through other
// gpus too, by their messages. Gpus are looked at one after the other, which keeps the clocks short.
#include "harness/exchange/races.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::harness::exchange {
namespace {

/// The last accesses of each thread block to a chunk. Earlier ones come before those.
struct Accesses {
  struct Last {
    int block = 0;
    int read = -1;
    int write = -1;
  };
  std::vector<Last> by_block;

  Last& of(int block) {
    const auto found = std::ranges::find(by_block, block, &Last::block);
    return found != by_block.end() ? *found : by_block.emplace_back(Last{.block = block});
  }
};

class GpuRaces {
 public:
  GpuRaces(const Events& events, int gpu)
      : events_(events),
        gpu_(gpu),
        blocks_(events.file().gpus[static_cast<std::size_t>(gpu)].blocks.size()),
        clocks_(static_cast<std::size_t>(events.size()) * blocks_, -1) {
    const MscclFile& file = events.file();
    int before = 0;
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      begins_.push_back(before);
      before += file.chunks(gpu, buffer);
    }
    chunks_.resize(static_cast<std::size_t>(before));
  }

  Status run(const std::vector<int>& order) {
    for (const int event : order) {
      advance(event);
      if (events_.at(event).gpu == gpu_) TUTTI_RETURN_IF_ERROR(touch(event));
    }
    return {};
  }

 private:
  [[nodiscard]] int* clock(int event) { return clocks_.data() + static_cast<std::size_t>(event) * blocks_; }

  void advance(int index) {
    const Event& event = events_.at(index);
    int* const mine = clock(index);
    for (const int before : {event.index > 0 ? index - 1 : -1, event.awaited, event.sent}) {
      if (before < 0) continue;
      const int* const theirs = clock(before);
      for (std::size_t b = 0; b < blocks_; ++b) mine[b] = std::max(mine[b], theirs[b]);
    }
    if (event.gpu == gpu_) mine[event.block] = event.index;
  }

  Status touch(int event) {
    const MscclStep& step = events_.step_of(event);
    for (int i = 0; i < step.count; ++i) {
      if (step.type->reads_source) TUTTI_RETURN_IF_ERROR(access(event, step.source, i, false));
      if (step.type->writes) TUTTI_RETURN_IF_ERROR(access(event, step.destination, i, true));
    }
    return {};
  }

  Status access(int event, const Chunks& chunks, int index, bool is_write) {
    const Place place = place_of(events_.file(), gpu_, chunks, index);
    const int chunk = begins_[static_cast<std::size_t>(place.buffer)] + place.chunk;
    Accesses& accesses = chunks_[static_cast<std::size_t>(chunk)];
    const int block = events_.at(event).block;
    for (const Accesses::Last& last : accesses.by_block) {
      if (last.block == block) continue;
      for (const int other : {last.write, is_write ? last.read : -1}) {
        if (other < 0 || clock(event)[last.block] >= events_.at(other).index) continue;
        return error(Code::refuted, "race: {} {} {} chunk {}, which {} {}, and nothing orders the two",
                     events_.place(event), is_write ? "writes" : "reads", to_string(place.buffer), place.chunk,
                     events_.place(other), other == last.write ? "writes" : "reads");
      }
    }
    Accesses::Last& own = accesses.of(block);
    (is_write ? own.write : own.read) = event;
    return {};
  }

  const Events& events_;
  const int gpu_;
  const std::size_t blocks_;
  std::vector<int> clocks_;  ///< [event][thread block]: the last step that comes before, or the event itself
  std::vector<int> begins_;  ///< [buffer]
  std::vector<Accesses> chunks_;
};

}  // namespace

Place place_of(const MscclFile& file, int gpu, const Chunks& chunks, int index) {
  const Place named{.buffer = chunks.buffer, .chunk = chunks.first + index};
  const int inputs = input_blocks(file.problem, gpu), outputs = output_blocks(file.problem, gpu);
  if (named.buffer == Buffer::scratch) return named;
  if (inputs == 0 || outputs == 0) {  // one buffer, in place by both names
    return {.buffer = inputs == 0 ? Buffer::output : Buffer::input, .chunk = named.chunk};
  }
  if (named.buffer == Buffer::output || !file.is_in_place) return named;
  const int shifted = named.chunk + in_place_block(file.problem, gpu) * file.chunks_per_block;
  const bool is_shared = shifted >= 0 && shifted < outputs * file.chunks_per_block;
  return is_shared ? Place{.buffer = Buffer::output, .chunk = shifted} : named;
}

Status check_races(const Events& events, const std::vector<int>& order) {
  for (int gpu = 0; gpu < events.file().problem.ranks; ++gpu) {
    if (events.file().gpus[static_cast<std::size_t>(gpu)].blocks.size() < 2) continue;
    TUTTI_RETURN_IF_ERROR(GpuRaces(events, gpu).run(order));
  }
  return {};
}

}  // namespace tutti::harness::exchange
