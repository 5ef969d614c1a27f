// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes of one machine, each on a GPU of its own. They tell each other over the host's memory by
// what to open each other's on the GPUs; the collectives themselves run there (impl/communicator/blocks.h).
#pragma once

#include "impl/transports/transport.h"

namespace tutti::cuda {

/// Its row in the table of transports.
[[nodiscard]] const Transport& transport();

}  // namespace tutti::cuda
