// SPDX-License-Identifier: Apache-2.0
// bandwidth over channels, in pairs of neighbouring ranks: the even one sends its messages back to back, the odd one
// acknowledges when it has all of them. The last of an odd number of ranks is idle.
//
// P = 3, a window of one message:
//        rank 0                     rank 1
//        step 0  CH(1) <- IN[0]     step 0  OUT[0] <- CH(0)
//        step 1  WAIT {1} phase 1   step 1  SIGNAL {0} phase 1
#include "impl/algorithms/window.h"

namespace tutti {

extern const Algorithm k_bandwidth_channel;
const Algorithm k_bandwidth_channel{
    .collective = Collective::bandwidth,
    .name = "channel",
    .summary = "even ranks send a window of messages to the next one, which acknowledges the last",
    .source = "osu_bw of the OSU benchmarks",
    .shape = window::channels::shape,
    .step_count = window::channels::step_count,
    .step = window::channels::step,
    .cost = window::channels::cost,
    .least_slots = one_slot,
};

}  // namespace tutti
