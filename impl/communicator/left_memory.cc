// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/left_memory.h"

#include <chrono>
#include <thread>

#include "impl/communicator/communicator.h"
#include "impl/transports/failure.h"
#include "impl/transports/journal.h"

namespace tutti {
namespace {

constexpr std::chrono::seconds kMostToClose(10);
/// Where a rank has failed, it may never do so.
constexpr std::chrono::seconds kMostAfterFailure(1);
constexpr std::chrono::microseconds kBetweenLooks(200);

bool have_all_left(const Domain& domain) {
  for (int rank = 0; rank < domain.shape().ranks; ++rank) {
    if (domain.seat(rank).journal->has_left.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

}  // namespace

void LeftMemory::add(DeviceMemory memory, std::shared_ptr<Domain> domain) {
  all_.push_back({.memory = std::move(memory), .domain = std::move(domain)});
}

void LeftMemory::release() {
  std::erase_if(all_, [](const One& one) { return have_all_left(*one.domain); });
}

LeftMemory::~LeftMemory() {
  const Clock::time_point begin = Clock::now();
  for (One& one : all_) {
    while (!have_all_left(*one.domain)) {
      const bool has_failed = failed_rank_of(*one.domain).has_value();
      if (Clock::now() - begin > (has_failed ? kMostAfterFailure : kMostToClose)) {
        one.memory.abandon();
        break;
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

}  // namespace tutti
