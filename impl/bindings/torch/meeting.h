// SPDX-License-Identifier: Apache-2.0
// The store of torch as the exchange by which ranks meet.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "impl/bindings/torch/torch.h"
#include "impl/embed/world.h"

namespace tutti::bindings {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

[[nodiscard]] std::string text_in(c10d::Store& store, const std::string& key);
void set_text(c10d::Store& store, const std::string& key, const std::string& text);

/// The world of all ranks of the program, and which of its ranks a group has.
struct Members {
  std::shared_ptr<embed::World> all;  // null: it is not known
  std::vector<int> ranks;             // [rank in the group]
};

/// The world of the ranks that share the store. The n-th group of a store has keys of its own, for a store outlives a
/// group that is destroyed and made anew. Throws what went wrong; or what a handler of a signal raised meanwhile. A
/// member that has ended in the world of all ends the meeting.
[[nodiscard]] std::shared_ptr<embed::World> meet(const StorePointer& store, int rank, int ranks,
                                                 std::chrono::nanoseconds timeout, const Members& members);

}  // namespace tutti::bindings
