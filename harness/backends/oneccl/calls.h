// SPDX-License-Identifier: Apache-2.0
// The calls that oneCCL has, and those that are made of its sends and receives, with what they are called with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <oneapi/ccl.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::backend_oneccl {

struct Prepared;

/// A group of ranks.
struct Group {
  ccl::communicator communicator;
  ccl::shared_ptr_class<ccl::kvs> store = {};  ///< by which its ranks have met; null: of another group
  /// Messages of this rank to itself, which oneCCL does not carry, and receives of such. One of the two is empty.
  std::deque<std::vector<std::byte>> own_messages = {};
  std::deque<Prepared*> own_receives = {};

  [[nodiscard]] int rank() const { return communicator.rank(); }
  [[nodiscard]] int ranks() const { return communicator.size(); }
};

/// A block of a v form.
struct Block {
  std::size_t count = 0;
  std::size_t offset_bytes = 0;
};

/// Starts what can go on at the same time: keeps its events in the call.
using Phase = void (*)(Prepared&);

/// The arguments of a call, which may be made any number of times, and the state of the one that was made last.
struct Prepared {
  Phase first = nullptr;
  Phase second = nullptr;  ///< when all of the first has ended; null: there is none
  Group* group = nullptr;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::size_t count = 0;  ///< elements of a block
  std::size_t element_bytes = 1;
  int root = 0;  ///< of a send or receive the other rank
  ccl::datatype type = ccl::datatype::uint8;
  ccl::reduction op = ccl::reduction::sum;
  std::vector<Block> send_blocks = {}, receive_blocks = {};        ///< v forms
  std::vector<std::size_t> send_counts = {}, receive_counts = {};  ///< the same, as oneCCL takes them
  int partner = -1;                                                ///< in a collective of pairs; -1: none
  bool is_one_pair = false;
  int window = 0;
  std::byte acknowledgement_sent{}, acknowledgement_received{};

  std::vector<ccl::event> events = {};  ///< of the phase
  bool is_in_second = false;
  bool awaits_own_message = false;

  [[nodiscard]] std::size_t bytes() const { return count * element_bytes; }

  /// Begins the call. Throws what oneCCL throws, as do the others.
  void start();
  /// Whether it is over. Makes progress.
  bool test();
  void wait();

 private:
  /// Whether the phase that is over was the last; otherwise the next one has begun.
  bool is_over();
};

/// A row per call.
struct Row {
  std::string_view name;
  Phase first;
  Phase second = nullptr;
  bool reduces = false;
  bool overwrites = false;  ///< in place, what arrives would overwrite what is still to be sent
};

/// The rank that a rank exchanges messages with in a collective of pairs; -1: no rank.
[[nodiscard]] int partner_in(std::string_view collective, int rank, int ranks);

/// Null if there is no such call.
[[nodiscard]] const Row* find_row(std::string_view collective);
/// The names of all rows, with blanks between them.
[[nodiscard]] std::string row_names();

/// A message of `count` elements to or from `peer`, which is another rank. One of no element is left out by both.
void send_to(Prepared& p, int peer, const std::byte* from, std::size_t count);
void receive_from(Prepared& p, int peer, std::byte* to, std::size_t count);

// Collectives of pairs (pairs.cc).
void sendrecv(Prepared& p);
void ping(Prepared& p);
void pong(Prepared& p);
void one_window(Prepared& p);
void both_windows(Prepared& p);
void acknowledge(Prepared& p);

}  // namespace tutti::backend_oneccl
