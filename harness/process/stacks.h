// SPDX-License-Identifier: Apache-2.0
// Where processes are, by the stacks of their threads, as eu-stack (elfutils) reads them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "harness/floors.h"
#include "harness/process/interrupts.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::process {

struct RankStack {
  int rank = 0;
  std::string text;  ///< of all threads; "not read: " and why, if there is none
};
[[nodiscard]] inline bool is_read(const RankStack& stack) { return !stack.text.starts_with("not read: "); }
/// The bytes that are taken of one process's stacks. Those of a stack that overflows are many more.
inline constexpr std::size_t kMostStackBytes = std::size_t{64} << 10;
/// A host reads the stacks of all its processes within this time.
inline constexpr std::chrono::seconds kStacksPatience{10};
/// One process takes no more of it than this.
inline constexpr std::chrono::seconds kStackPatience{3};

/// The process of a rank; 0: it is not known.
using PidOfRank = std::function<pid_t(int rank)>;
/// The process of a rank that has ended: its number may be another's.
inline constexpr pid_t kEnded = -1;

/// Reads the stacks of ranks, one after the other, while its caller goes on with other work.
class StackReader {
 public:
  /// Reads those of `ranks` ranks from `first` on, within `most`. It asks for each process when its turn comes.
  StackReader(int first, int ranks, std::chrono::milliseconds most, PidOfRank pid_of);
  ~StackReader() { kill_reader(); }
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;

  /// The next stack, or why there is none, as soon as that is known. Does not block.
  [[nodiscard]] std::optional<RankStack> next();
  /// Whether nothing more comes: all have been read, or there is no eu-stack.
  [[nodiscard]] bool is_done() const { return rank_ == after_last_; }
  /// Whether there is an eu-stack, as far as is known.
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Starts eu-stack on the next rank. Returns why it does not; empty: it has started, or there is none.
  std::string start();
  /// What eu-stack has printed, once it has ended; empty: it has not.
  std::string finish();
  /// Takes some ms, and at most 0.5 s: a process that the kernel holds is left to it.
  void kill_reader();

  int rank_, after_last_;
  TimePoint end_;
  PidOfRank pid_of_;
  bool is_there_ = true;
  pid_t reader_ = 0;  ///< 0: none runs
  Descriptor printed_;
  TimePoint limit_;  ///< of that reader
};

/// What eu-stack printed, without what differs from process to process: numbers of processes and threads, addresses.
[[nodiscard]] std::string without_addresses(std::string_view printed);

/// One paragraph for each stack: the ranks that have it, and it. The one of the most ranks comes first; of as many,
/// that of the lowest rank.
[[nodiscard]] std::string grouped(std::span<const RankStack> stacks);

/// The lines of `told` that a stack may have, for what another host tells.
[[nodiscard]] std::string stack_lines(std::string_view told);

/// The stacks of `ranks` ranks, as a StackReader reads them: [rank], and fewer after an interrupt. Empty if there is no
/// eu-stack.
[[nodiscard]] std::vector<RankStack> stacks_of(int ranks, std::chrono::milliseconds most, const PidOfRank& pid_of,
                                               const Interrupts& interrupts);

}  // namespace tutti::harness::process
