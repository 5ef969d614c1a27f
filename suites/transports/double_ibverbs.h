// SPDX-License-Identifier: Apache-2.0
// What tests ask of the double of libibverbs, beside what it is a double of.
#pragma once

namespace tutti::doubles {

/// Writes stay on their way until this is over.
void stall(bool is_stalled);
/// So many more writes of this process arrive; those after them fail as if the peer did not answer. Negative: no end.
void break_after(int writes);
/// Contexts, domains, memories, queues and connections that are open, and calls that were refused for their order.
int open_objects();
int mistakes();

}  // namespace tutti::doubles
