// SPDX-License-Identifier: Apache-2.0
// The calls that NCCL has, and those that are made of its sends and receives, with what they are called with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/backends/nccl/world.h"

namespace tutti::backend_nccl {

/// A block of a v form.
struct Block {
  std::size_t count = 0;
  std::size_t offset_bytes = 0;
};

struct Prepared;
/// Puts the call on its stream, or into the open group.
using Function = Answer (*)(const Prepared&);

/// The arguments of a call, which may be made any number of times, and the state of the one that was posted.
struct Prepared {
  Function function = nullptr;
  const World* world = nullptr;
  const Nccl* nccl = nullptr;
  std::shared_ptr<Group> group;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::size_t count = 0;  ///< elements of a block
  std::size_t element_bytes = 1;
  int root = 0;  ///< of a send or receive the other rank
  Type type = kUint8;
  Op op = kSum;
  bool has_own_op = false;                         ///< premul_sum: made for this call
  std::vector<Block> send_blocks, receive_blocks;  ///< v forms
  int partner = -1;                                ///< in a collective of pairs; -1: none
  bool is_one_pair = false;
  int window = 0;
  Stream stream = nullptr;
  cuda::Event event = nullptr;  ///< null where it is not for post
  bool is_posted = false, is_recorded = false;
  std::string what;  ///< for messages

  [[nodiscard]] std::size_t bytes() const { return count * element_bytes; }
};

/// A row per call.
struct Row {
  std::string_view name;
  Function function;
  bool reduces = false;
  bool overwrites = false;  ///< in place, what arrives would overwrite what is still to be sent
  bool answers = false;     ///< what a rank sends follows what it received: two groups of NCCL, one after the other
};

/// The rank that a rank exchanges messages with in a collective of pairs; -1: no rank.
[[nodiscard]] int partner_in(std::string_view collective, int rank, int ranks);

/// Null where there is no such call.
[[nodiscard]] const Row* find_row(std::string_view collective);
/// The names of all rows, with blanks between them.
[[nodiscard]] std::string row_names();

// Collectives of pairs (pairs.cc).
Answer sendrecv(const Prepared& p);
Answer pingpong(const Prepared& p);
Answer one_window(const Prepared& p);
Answer both_windows(const Prepared& p);

/// Makes the calls of `body` one group to NCCL, which starts them together.
template <class Body>
Answer together(const Prepared& p, Body body) {
  if (const Answer answer = p.nccl->ncclGroupStart(); answer != kSuccess) return answer;
  const Answer inner = body();
  const Answer ended = p.nccl->ncclGroupEnd();
  return inner == kSuccess ? ended : inner;
}

/// A message of `count` elements to or from `peer`.
inline Answer send_to(const Prepared& p, int peer, const std::byte* from, std::size_t count) {
  return p.nccl->ncclSend(from, count, p.type, peer, p.group->comm, p.stream);
}
inline Answer receive_from(const Prepared& p, int peer, std::byte* to, std::size_t count) {
  return p.nccl->ncclRecv(to, count, p.type, peer, p.group->comm, p.stream);
}

}  // namespace tutti::backend_nccl
