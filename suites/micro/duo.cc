// SPDX-License-Identifier: Apache-2.0
#include "suites/micro/duo.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sched.h>
#include <vector>

#include "harness/machine/allowed_cores.h"
#include "impl/transports/local/domain.h"

namespace tutti::micro {
namespace {

constexpr std::size_t kPage = 4096;

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof(set), &set);  // refused only where the mask has just changed: then it runs unpinned
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/// Exact in float, different for every rank neighbouring element and operation.
float input_at(std::size_t index, int rank, int operation) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(operation) * 131) % 4093 +
                            static_cast<std::size_t>(rank) * 8192);
}

}  // namespace

Result<std::unique_ptr<Duo>> Duo::create(std::size_t capacity, std::size_t places) {
  const std::vector<int> cores = harness::allowed_cores();
  if (cores.size() < 2) return error(Code::unavailable, "two cores are needed, {} is allowed", cores.size());
  std::unique_ptr<Duo> duo(new Duo());
  duo->cores_ = {cores[0], cores[1]};
  for (std::size_t i = 0; i < places; ++i) {
    duo->places_.push_back(std::make_unique<Place>());
    TUTTI_ASSIGN_OR_RETURN(duo->places_.back()->domain, local::open_domain(local::shape_for(2)));
  }
  pin_to(cores[0]);
  // Each rank makes its own communicator, as programs do: memory of two threads then shares no line.
  duo->peer_ = std::thread([raw = duo.get(), capacity] { raw->serve(capacity); });
  Status status = duo->set_up(0, capacity);
  wait_for(duo->finished_.value, 1);
  TUTTI_RETURN_IF_ERROR(status);
  TUTTI_RETURN_IF_ERROR(duo->ranks_[1].status);
  return duo;
}

Duo::~Duo() {
  posted_.value.store(kStop, std::memory_order_release);
  if (peer_.joinable()) peer_.join();
}

Status Duo::set_up(int index, std::size_t capacity) {
  for (const auto& place : places_) TUTTI_RETURN_IF_ERROR(set_up(*place, index, capacity));
  return {};
}

Status Duo::set_up(Place& place, int index, std::size_t capacity) {
  Member& member = place.members[static_cast<std::size_t>(index)];
  TUTTI_ASSIGN_OR_RETURN(member.communicator, Communicator::create(*place.domain, index, {.cores = 2}));
  // One allocation, cut at page boundaries: all four buffers have the same alignment and page kind. Five pages lie
  // between them: at distances of powers of two, buffers compete for the same way of the first-level cache.
  const std::size_t bytes = capacity * sizeof(float) + 5 * kPage;
  TUTTI_ASSIGN_OR_RETURN(void* const memory, member.communicator->alloc_shared(4 * bytes + kPage));
  auto* base = static_cast<std::byte*>(memory);
  base += (kPage - reinterpret_cast<std::uintptr_t>(base) % kPage) % kPage;
  for (std::size_t side = 0; side < 2; ++side) {
    member.buffers[side].input = reinterpret_cast<float*>(base + 2 * side * bytes);
    member.buffers[side].output = reinterpret_cast<float*>(base + (2 * side + 1) * bytes);
  }
  const auto handwritten = static_cast<std::size_t>(Side::handwritten);
  place.shared.inputs[static_cast<std::size_t>(index)] = member.buffers[handwritten].input;
  place.shared.outputs[static_cast<std::size_t>(index)] = member.buffers[handwritten].output;
  member.handwritten = std::make_unique<HandwrittenAllReduce>(place.shared, index);
  return {};
}

void Duo::serve(std::size_t capacity) {
  pin_to(cores_[1]);
  ranks_[1].status = set_up(1, capacity);
  finished_.value.store(1, std::memory_order_release);
  for (std::uint64_t served = 1;; ++served) {
    std::uint64_t posted = 0;
    while ((posted = posted_.value.load(std::memory_order_acquire)) == served) relax();
    if (posted == kStop) return;
    perform(1);
    finished_.value.store(served + 1, std::memory_order_release);
  }
}

Result<double> Duo::run(const Batch& batch) {
  batch_ = batch;
  const std::uint64_t number = posted_.value.load(std::memory_order_relaxed) + 1;
  posted_.value.store(number, std::memory_order_release);
  perform(0);
  wait_for(finished_.value, number);
  for (const Rank& rank : ranks_) TUTTI_RETURN_IF_ERROR(rank.status);
  const std::int64_t start = std::min(ranks_[0].start_ns, ranks_[1].start_ns);
  const std::int64_t end = std::max(ranks_[0].end_ns, ranks_[1].end_ns);
  return static_cast<double>(end - start) / batch.operations;
}

void Duo::perform(int index) {
  Rank& rank = ranks_[static_cast<std::size_t>(index)];
  if (batch_.is_checked) {
    Status first_wrong;  // the peer would wait for ever if this rank stopped there
    for (int operation = 0; operation < batch_.operations; ++operation) {
      const Status status = check(index, operation);
      if (first_wrong.is_ok()) first_wrong = status;
    }
    if (rank.status.is_ok()) rank.status = first_wrong;
    return;
  }
  repeat(index, batch_.untimed);
  rank.start_ns = now_ns();
  repeat(index, batch_.operations);
  rank.end_ns = now_ns();
}

void Duo::repeat(int index, int operations) {
  Member& member = places_[batch_.place]->members[static_cast<std::size_t>(index)];
  const std::size_t count = batch_.count;
  switch (batch_.side) {
    case Side::handwritten: {
      for (int i = 0; i < operations; ++i) (*member.handwritten)(count);
      break;
    }
    case Side::tutti: {
      const Buffers buffers = member.buffers[static_cast<std::size_t>(Side::tutti)];
      Status& status = ranks_[static_cast<std::size_t>(index)].status;
      for (int i = 0; i < operations && status.is_ok(); ++i) {
        status = member.communicator->all_reduce(buffers.input, buffers.output, static_cast<Count>(count), Dtype::f32,
                                                 Op::sum, tutti::Buffers::shared);
      }
      break;
    }
    case Side::line: {
      for (int i = 0; i < operations; ++i) bounce(index);
      break;
    }
  }
}

/// One round trip: rank 0 writes its word, rank 1 answers in its own.
void Duo::bounce(int index) {
  const std::uint64_t epoch = ++ranks_[static_cast<std::size_t>(index)].line_epoch;
  std::atomic<std::uint64_t>& mine = line_[static_cast<std::size_t>(index)].value;
  if (index == 0) mine.store(epoch, std::memory_order_release);
  wait_for(line_[static_cast<std::size_t>(1 - index)].value, epoch);
  if (index == 1) mine.store(epoch, std::memory_order_release);
}

/// One operation on inputs of its own. Its output is compared as soon as it returns here, and at the next call its
/// input is overwritten. The ranks take turns in being late: a rank that returns or reads too early is seen.
Status Duo::check(int index, int operation) {
  const Member& member = places_[batch_.place]->members[static_cast<std::size_t>(index)];
  const Buffers& buffers = member.buffers[static_cast<std::size_t>(batch_.side)];
  for (std::size_t i = 0; i < batch_.count; ++i) {
    buffers.input[i] = input_at(i, index, operation);
    buffers.output[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::int64_t late_ns = operation % 3 == index ? 20'000 : 0;
  for (const std::int64_t start = now_ns(); now_ns() - start < late_ns;) relax();
  repeat(index, 1);
  for (std::size_t i = 0; i < batch_.count; ++i) {
    const float expected = input_at(i, 0, operation) + input_at(i, 1, operation);
    if (buffers.output[i] == expected) continue;
    return error(Code::mismatch, "{} all_reduce of {} elements, operation {}: rank {} element {} is {}, expected {}",
                 batch_.side == Side::tutti ? "tutti" : "hand-written", batch_.count, operation, index, i,
                 buffers.output[i], expected);
  }
  return {};
}

std::string Duo::algorithm(std::size_t count) const {
  Call call{.collective = Collective::all_reduce, .dtype = Dtype::f32, .op = Op::sum};
  call.count = static_cast<Count>(count);
  call.buffers = tutti::Buffers::shared;
  return std::string(places_.front()->members[0].communicator->choose(call).name);
}

}  // namespace tutti::micro
