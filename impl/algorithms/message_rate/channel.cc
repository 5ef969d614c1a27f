// SPDX-License-Identifier: Apache-2.0
// message_rate over channels: rank i of the lower half sends its messages back to back to rank i + P/2, which
// acknowledges when it has all of them. The last of an odd number of ranks is idle.
//
// P = 5, a window of one message:
//        rank 0                     rank 2
//        step 0  CH(2) <- IN[0]     step 0  OUT[0] <- CH(0)
//        step 1  WAIT {2} phase 1   step 1  SIGNAL {0} phase 1
#include "impl/algorithms/window.h"

namespace tutti {

extern const Algorithm k_message_rate_channel;
const Algorithm k_message_rate_channel{
    .collective = Collective::message_rate,
    .name = "channel",
    .summary = "the lower half sends a window of messages to the upper one, which acknowledges the last",
    .source = "osu_mbw_mr of the OSU benchmarks",
    .shape = window::channels::shape,
    .step_count = window::channels::step_count,
    .step = window::channels::step,
    .cost = window::channels::cost,
    .least_slots = one_slot,
};

}  // namespace tutti
