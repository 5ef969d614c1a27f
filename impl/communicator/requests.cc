// SPDX-License-Identifier: Apache-2.0
#include "impl/communicator/requests.h"

#include <algorithm>
#include <limits>

namespace tutti {

Status check_group(std::span<const int> members, int ranks) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] < 0 || members[i] >= ranks) {
      return error(Code::invalid_argument, "a group of rank {}, which is out of range: 0 to {}", members[i], ranks - 1);
    }
    if (std::ranges::count(members.first(i), members[i]) > 0) {
      return error(Code::invalid_argument, "a group with rank {} twice", members[i]);
    }
  }
  return {};
}

std::uint64_t hash_of_group(std::span<const int> members) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL + members.size();
  for (const int rank : members) {
    hash = (hash ^ static_cast<std::uint64_t>(rank)) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32U;
  }
  return hash | 1U;  // 0 is a split
}

Result<std::int64_t> bytes_of_transfer(const TransferRequest& request) {
  const char* const what = request.is_send ? "send to" : "receive from";
  if (request.peer < 0 || request.peer >= request.ranks) {
    return error(Code::invalid_argument, "{} rank {}, which is out of range: 0 to {}", what, request.peer,
                 request.ranks - 1);
  }
  if (request.tag < 0) {
    return error(Code::invalid_argument, "{} rank {}: tag {} is out of range: 0 to {}", what, request.peer, request.tag,
                 std::numeric_limits<int>::max());
  }
  std::int64_t bytes = 0;
  if (request.count < 0 ||
      __builtin_mul_overflow(request.count, static_cast<std::int64_t>(size_of(request.dtype)), &bytes)) {
    return error(Code::invalid_argument, "{} rank {}: count {} is out of range: 0 to 2^63 bytes", what, request.peer,
                 request.count);
  }
  if (bytes > 0 && request.buffer == nullptr) {
    return error(Code::invalid_argument, "{} rank {}: the buffer is a null pointer", what, request.peer);
  }
  return bytes;
}

Call placed_where_it_lies(const Call& call, int rank, int ranks) {
  const Problem problem{.collective = call.collective, .ranks = ranks, .root = call.root};
  Call placed = call;
  placed.is_in_place = lies_in_place(problem, rank, call.input, call.output,
                                     call.count * static_cast<std::int64_t>(size_of(call.dtype)));
  return placed;
}

}  // namespace tutti
