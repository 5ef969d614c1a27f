// SPDX-License-Identifier: Apache-2.0
// Direct bandwidth, in pairs of neighbouring ranks. The even one announces its messages one by one. The odd one reads
// each as soon as it is announced, and acknowledges when it has all of them. The last of an odd number of ranks is
// idle.
//
// P = 3, a window of one message:
//        rank 0                                    rank 1
//        step 0  SIGNAL {1} phase 1, read IN[0]    step 0  WAIT {0} phase 1
//        step 1  WAIT {1} phase 2                  step 1  OUT[0] <- IN[0]@0
//                                                  step 2  SIGNAL {0} phase 2
#include "impl/algorithms/window.h"

namespace tutti {

extern const Algorithm k_bandwidth_direct;
const Algorithm k_bandwidth_direct{
    .collective = Collective::bandwidth,
    .name = "direct",
    .summary =
        "odd ranks read a window of messages from the rank before, one by one as they are announced; for shared memory",
    .source = "osu_bw by remote reads",
    .shape = window::direct::shape,
    .step_count = window::direct::step_count,
    .step = window::direct::step,
    .cost = window::direct::cost,
};

}  // namespace tutti
