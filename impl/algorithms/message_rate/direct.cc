// SPDX-License-Identifier: Apache-2.0
// Direct message_rate: rank i of the lower half announces its messages one by one to rank i + P/2. That rank reads each
// as soon as it is announced, and acknowledges when it has all of them. The last of an odd number of ranks is idle.
//
// P = 5, a window of one message:
//        rank 0                                    rank 2
//        step 0  SIGNAL {2} phase 1, read IN[0]    step 0  WAIT {0} phase 1
//        step 1  WAIT {2} phase 2                  step 1  OUT[0] <- IN[0]@0
//                                                  step 2  SIGNAL {0} phase 2
#include "impl/algorithms/window.h"

namespace tutti {

extern const Algorithm k_message_rate_direct;
const Algorithm k_message_rate_direct{
    .collective = Collective::message_rate,
    .name = "direct",
    .summary =
        "the upper half reads a window of messages from the lower one, one by one as they are announced; for shared "
        "memory",
    .source = "osu_mbw_mr by remote reads",
    .shape = window::direct::shape,
    .step_count = window::direct::step_count,
    .step = window::direct::step,
    .cost = window::direct::cost,
};

}  // namespace tutti
