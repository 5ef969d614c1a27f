// SPDX-License-Identifier: Apache-2.0
// The calls that Gloo has, and what they are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gloo/context.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/gloo/group.h"

namespace tutti::backend_gloo {

/// What Gloo is called with. Collectives that only move data move bytes.
struct Arguments {
  Seat seat;
  std::shared_ptr<gloo::Context> context;
  Mailbox* mailbox = nullptr;
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
  bool is_in_place = false;
  std::size_t count = 0;  ///< elements of a block
  std::size_t element_bytes = 1;
  int root = 0;  ///< of a send or receive the other rank
  void (*reduce)(void*, const void*, const void*, std::size_t) = nullptr;
  std::vector<std::size_t> send_bytes, receive_bytes;  ///< of each block; v forms
  // collectives of pairs
  int partner = -1;  ///< -1: none
  bool is_one_pair = false;
  int window = 0;

  [[nodiscard]] std::size_t bytes() const { return count * element_bytes; }
  [[nodiscard]] std::size_t all_bytes() const { return bytes() * static_cast<std::size_t>(seat.ranks); }
  [[nodiscard]] bool is_root() const { return seat.rank == root; }
};

/// A prepared call, which may be run any number of times. Its parts throw what Gloo throws.
struct Call {
  std::function<void()> start;   ///< hands a message over to Gloo, and returns at once; empty where there is none
  std::function<void()> finish;  ///< returns when all is done
};

/// A row per call.
struct Row {
  std::string_view name;
  Call (*make)(const Arguments& arguments);
  bool reduces = false;
  bool overwrites = false;  ///< in place, what arrives would overwrite what is still to be sent
};

/// Null where there is no such call.
[[nodiscard]] const Row* find_row(std::string_view collective);
/// The names of all rows, with blanks between them.
[[nodiscard]] std::string row_names();

}  // namespace tutti::backend_gloo
