// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, and the collectives that are made of them: Gloo's unbound buffers.
#pragma once

#include <string_view>

#include "harness/backends/gloo/calls.h"

namespace tutti::backend_gloo {

/// The rank that a rank exchanges messages with in a collective of pairs; -1: no rank.
[[nodiscard]] int partner_in(std::string_view collective, const Seat& seat);

[[nodiscard]] Call send(const Arguments& arguments);
[[nodiscard]] Call receive(const Arguments& arguments);
[[nodiscard]] Call sendrecv(const Arguments& arguments);
[[nodiscard]] Call pingpong(const Arguments& arguments);
[[nodiscard]] Call one_window(const Arguments& arguments);
[[nodiscard]] Call both_windows(const Arguments& arguments);

}  // namespace tutti::backend_gloo
