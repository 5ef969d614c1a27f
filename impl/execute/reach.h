// SPDX-License-Identifier: Apache-2.0
// Which schedules may run on ranks of several hosts. Over a link go the slots of channels and flag lines, and nothing
// else does.
#pragma once

#include "impl/schedule/bind.h"
#include "impl/schedule/schedule.h"
#include "impl/transports/hosts.h"
#include "impl/types/status.h"

namespace tutti {

/// Whether every rank leaves alone what it cannot reach: memory of ranks of other hosts, but for what lies in a flag
/// line. All ranks are asked about, so that all refuse alike.
/// A flag for another host must not come while an older one of its generation is still to be heard there, and no rank
/// sees what ranks of other hosts have completed. So either everybody waits for all ranks, now and at most half of the
/// generations before (Engine::put_fence); or the one that signals has got a message from the one that hears before:
/// that one uses its channels in the order of operations.
/// `scratch_is_in_line`: binding has placed the scratch in the flag line.
/// Errors: unavailable naming both ranks and what one would touch of the other.
[[nodiscard]] Status check_reach(const Schedule& schedule, bool scratch_is_in_line, const Hosts& hosts);
/// The same of a schedule that is bound.
[[nodiscard]] Status check_reach(const Schedule& schedule, const BoundCall& bound, const Hosts& hosts);

/// Whether any rank signals to a rank of another host.
[[nodiscard]] bool signals_across(const Schedule& schedule, const Hosts& hosts);

}  // namespace tutti
