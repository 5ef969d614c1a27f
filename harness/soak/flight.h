// SPDX-License-Identifier: Apache-2.0
// One operation of a soak on one rank, from the filling of its buffers to their verification.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/backends/group.h"
#include "harness/soak/mix.h"
#include "harness/verify/buffers.h"

namespace tutti::harness::soak {

class Flight {
 public:
  /// Fills the buffers and posts. Requires: the group supports it. Errors: those of memory and of post.
  [[nodiscard]] static Result<std::unique_ptr<Flight>> post(Group& group, const SoakOperation& operation);

  /// One look at one of its handles.
  [[nodiscard]] Result<bool> test();
  Status wait(std::chrono::nanoseconds timeout);
  [[nodiscard]] const SoakOperation& operation() const { return operation_; }
  /// All that the call was given to write to, gaps included.
  [[nodiscard]] std::span<std::byte> output() const { return out_; }
  /// On the common clock: before it was posted, and when it was seen complete.
  [[nodiscard]] std::int64_t entered_ns() const { return entered_ns_; }
  [[nodiscard]] std::int64_t left_ns() const { return left_ns_; }
  /// What is wrong with outputs, the gaps between their blocks, inputs or guards; empty: nothing.
  [[nodiscard]] std::string verify() const;
  /// For messages: "operation 17 (all_reduce int8 sum of 64 on 3 ranks, root 0, out, private)".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string position() const { return pending_.front()->position(); }
  [[nodiscard]] std::string report() const { return pending_.front()->report(); }

 private:
  Flight(Group& group, const SoakOperation& operation) : group_(group), operation_(operation) {}
  Status post_collective();
  Status post_exchange();
  [[nodiscard]] Result<GuardedBuffer> buffer_of(std::size_t bytes, std::uint64_t salt) const;
  [[nodiscard]] std::string verify_collective() const;
  [[nodiscard]] std::string verify_input() const;
  [[nodiscard]] std::string verify_exchange() const;
  [[nodiscard]] int receives_from() const;
  [[nodiscard]] int sends_to() const;

  Group& group_;
  SoakOperation operation_;
  std::optional<GuardedBuffer> input_;   // empty in place
  std::optional<GuardedBuffer> output_;  // in place the larger of both, which holds the other
  std::span<std::byte> in_, out_;        // what the call was given
  std::vector<std::unique_ptr<Pending>> pending_;
  std::int64_t entered_ns_ = 0, left_ns_ = 0;
};

}  // namespace tutti::harness::soak
