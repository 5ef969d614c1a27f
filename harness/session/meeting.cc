// SPDX-License-Identifier: Apache-2.0
#include "harness/session/meeting.h"

namespace tutti::harness::session {
namespace {

static_assert(TUTTI_EXCHANGE_BYTES <= Host::kMostBytes);

/// The library's own code runs before and after it.
int exchange(void* context, const void* mine, void* all, std::size_t bytes) {
  Host& host = *static_cast<Host*>(context);
  const bool is_done = bytes <= TUTTI_EXCHANGE_BYTES && host.exchange_bytes(mine, all, bytes).is_ok();
  host.announce(Activity::operation);
  return is_done ? 0 : 1;
}

}  // namespace

TuttiBackendJoin Meeting::join() {
  return {.local_ranks = devices_.empty() ? 1 : static_cast<std::int32_t>(devices_.size()),
          .devices = devices_.empty() ? nullptr : devices_.data(),
          .host = host_.at().machine,
          .rank_on_host = host_.at().local,
          .exchange = exchange,
          .context = &host_,
          .address = address_.empty() ? nullptr : address_.c_str()};
}

}  // namespace tutti::harness::session
