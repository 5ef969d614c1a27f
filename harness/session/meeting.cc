// SPDX-License-Identifier: Apache-2.0
#include "harness/session/meeting.h"

namespace tutti::harness::session {

static_assert(TUTTI_EXCHANGE_BYTES <= Runner::kMostBytes);

/// The library's own code runs before and after it.
int Meeting::exchange(void* context, const void* mine, void* all, std::size_t bytes) {
  Meeting& meeting = *static_cast<Meeting*>(context);
  if (bytes > TUTTI_EXCHANGE_BYTES) return 1;
  meeting.failure_ = meeting.runner_.exchange_bytes(mine, all, bytes);
  meeting.runner_.announce(Activity::operation);
  return meeting.failure_.is_ok() ? 0 : 1;
}

Status Meeting::open(ReferenceBackend& reference, int first) {
  const Status opened = reference.open(runner_.job_ranks(), first, join());
  return failure_.is_ok() ? opened : failure_;
}

TuttiBackendJoin Meeting::join() {
  return {.local_ranks = devices_.empty() ? 1 : static_cast<std::int32_t>(devices_.size()),
          .devices = devices_.empty() ? nullptr : devices_.data(),
          .host = runner_.at().host,
          .rank_on_host = runner_.at().local,
          .exchange = exchange,
          .context = this,
          .address = address_.empty() ? nullptr : address_.c_str()};
}

}  // namespace tutti::harness::session
