// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/failure.h"

#include <algorithm>

#include "impl/transports/journal.h"
#include "impl/types/printable.h"

namespace tutti {
namespace {

constexpr std::uint64_t kRankMask = 0xffffffffU;
constexpr unsigned kTellerShift = 32;

}  // namespace

bool announce_failure(const Domain& domain, int teller, int failed, std::string_view text) {
  std::atomic<std::uint64_t>& word = domain.abort_line().word;
  std::uint64_t expected = word.load(std::memory_order_acquire);
  if (expected != 0) return false;
  FailureText& place = domain.seat(teller).journal->failure;
  const std::string_view kept = beginning_of(text, place.text.size());
  std::ranges::copy(kept, place.text.begin());
  place.bytes = kept.size();
  const std::uint64_t announced =
      (static_cast<std::uint64_t>(teller) + 1) << kTellerShift | (static_cast<std::uint64_t>(failed) + 1);
  return word.compare_exchange_strong(expected, announced, std::memory_order_acq_rel);
}

std::optional<int> failed_rank_of(const Domain& domain) {
  const std::uint64_t word = domain.abort_line().word.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return static_cast<int>((word & kRankMask) - 1);
}

Status announced_failure(const Domain& domain) {
  const std::uint64_t word = domain.abort_line().word.load(std::memory_order_acquire);
  if (word == 0) return {};
  const std::uint64_t teller = word >> kTellerShift;
  if (teller > 0) {
    const FailureText& place = domain.seat(static_cast<int>(teller - 1)).journal->failure;
    if (place.bytes > 0) {
      return {Code::aborted, std::string(place.text.data(), std::min<std::size_t>(place.bytes, place.text.size()))};
    }
  }
  return error(Code::aborted, "{} failed", domain.name_of(static_cast<int>((word & kRankMask) - 1)));
}

std::string text_for_others(const Domain& domain, int failed, const Status& why) {
  if (why.code() == Code::aborted) return why.message();
  // The lines that follow the first say where all ranks stand, which is too much.
  const std::string_view message = why.message();
  return fmt::format("{} failed: {}: {}", domain.name_of(failed), to_string(why.code()),
                     message.substr(0, message.find('\n')));
}

}  // namespace tutti
