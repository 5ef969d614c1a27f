// SPDX-License-Identifier: Apache-2.0
// Text on its way to a reader that may be slow: a pipe, a socket or a terminal. A thread writes it, so that a program
// which serves ranks never waits for a pager. The thread sleeps while there is nothing to write.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::text {

class OutletQueue;

/// A descriptor to which this process writes. What is written to one file through several outlets arrives in order.
class Outlet : public std::enable_shared_from_this<Outlet> {
 public:
  /// Of stdout, and of stderr, which live as long as the process. A broken pipe raises SIGPIPE for stdout alone.
  static Outlet& to_stdout();
  static Outlet& to_stderr();
  /// Owns `file`.
  [[nodiscard]] static std::shared_ptr<Outlet> on(Descriptor file);

  /// Writes `text` as a whole, now or in a while: a reader that keeps up has it on return. A regular file is written
  /// at once. Returns 0 or the errno of the first failure, after which nothing more is written. Any thread may call.
  int write(std::string_view text);
  /// 0 or the errno of the first failure.
  [[nodiscard]] int failure() const { return failure_; }
  /// Forgets the failure.
  void forgive() { failure_ = 0; }
  /// Whether an earlier text still waits for its reader.
  [[nodiscard]] bool is_behind() const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  friend class OutletQueue;
  Outlet(int descriptor, Descriptor owned, bool raises_pipe_signal);
  void put_out(std::string_view text);

  int descriptor_;
  Descriptor owned_;
  bool raises_pipe_signal_;
  std::atomic<int> failure_ = 0;
  OutletQueue* queue_ = nullptr;  ///< null: what never waits is written at once
};

/// Waits until all outlets have been written, or, with a `patience`, until none of them has moved for so long. What is
/// left then is dropped. Returns whether all was written or has failed.
bool drain_outlets(std::optional<std::chrono::milliseconds> patience = {});

}  // namespace tutti::harness::text
