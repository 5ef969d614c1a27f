// SPDX-License-Identifier: Apache-2.0
// A barrier over the store: rank 0 sees who has come, and says who has not, in the words of Gloo's.
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "impl/bindings/torch/failure.h"
#include "impl/bindings/torch/process_group.h"
#include "impl/bindings/torch/waiting.h"

namespace tutti::bindings {
namespace {

constexpr std::string_view kAllCame = "all";
/// By how much the others wait longer for rank 0 than it waits for them: it knows who is missing.
constexpr milliseconds kPatienceWithRank0(1000);

}  // namespace

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options, bool waits_for_all) {
  const milliseconds timeout = options.timeout == c10d::kUnsetTimeout ? timeout_ : options.timeout;
  const std::string keys = fmt::format("tutti/monitored_barrier/{}/", monitored_barriers_++);
  if (rank_ == 0) {
    wait_for_ranks(timeout, keys, waits_for_all);
  } else {
    wait_for_root(timeout, keys);
  }
}

void ProcessGroup::wait_for_root(milliseconds timeout, const std::string& keys) {
  const std::string verdict = keys + "verdict";
  set_text(*store_, keys + std::to_string(rank_), "came");
  if (!poll(timeout + kPatienceWithRank0, [&] { return store_->check({verdict}); })) {
    throw std::runtime_error(
        fmt::format("[Rank {}]: Rank {} timed out in monitoredBarrier after {} ms.", rank_, rank_, timeout.count()));
  }
  if (const std::string said = text_in(*store_, verdict); said != kAllCame) {
    throw std::runtime_error(
        fmt::format("[Rank {}]: Rank {} successfully reached monitoredBarrier, but received errors while waiting for "
                    "send/recv from "
                    "rank 0. Please check rank 0 logs for faulty rank.\n Original exception: {}",
                    rank_, rank_, said));
  }
}

void ProcessGroup::wait_for_ranks(milliseconds timeout, const std::string& keys, bool waits_for_all) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int> came, missing;
  bool is_late = false;
  for (int rank = 1; rank < size_ && !is_late && (missing.empty() || waits_for_all); ++rank) {
    const std::string key = keys + std::to_string(rank);
    const auto left = timeout - (std::chrono::steady_clock::now() - begin);
    is_late = left < left.zero() && !waits_for_all;
    if (!is_late) (poll(left, [&] { return store_->check({key}); }) ? came : missing).push_back(rank);
  }
  std::string verdict(kAllCame);
  if (is_late) {
    verdict =
        fmt::format("[Rank 0]: Rank 0 timed out in monitoredBarrier after {} ms. Successfully processed ranks: {}",
                    timeout.count(), came.empty() ? "none" : fmt::format("{}", fmt::join(came, ", ")));
  } else if (!missing.empty()) {
    verdict = fmt::format("[Rank 0]: Rank{} {} failed to pass monitoredBarrier in {} ms", waits_for_all ? "s" : "",
                          fmt::join(missing, ", "), timeout.count());
  }
  set_text(*store_, keys + "verdict", verdict);
  if (verdict != kAllCame) throw std::runtime_error(verdict);
}

}  // namespace tutti::bindings
