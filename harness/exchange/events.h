// SPDX-License-Identifier: Apache-2.0
// The steps of a file in one list, what each waits for, and an order in which all can be done. Thread blocks run beside
// each other: a step comes after the one before it in its block, after the step that it awaits, and after its message
// was sent. No other order is assumed.
#pragma once

#include <string>
#include <vector>

#include "harness/exchange/msccl.h"

namespace tutti::harness::exchange {

/// A step of a file, and what it has to do with others. Indices of events; -1: there is none.
struct Event {
  int gpu = 0;
  int block = 0;  ///< index in its gpu
  int index = 0;  ///< in its block
  int awaited = -1;
  int sent = -1;  ///< whose message it receives
  int into = -1;  ///< the link that it sends to
  int from = -1;  ///< the link that it receives from
};

/// A FIFO from a thread block to another one's, by gpus and channel.
struct Link {
  int from = 0;
  int to = 0;
  int channel = 0;
  int pair = 0;     ///< links between the same two gpus have the same
  int sender = -1;  ///< thread blocks, counted over all gpus; -1: there is none
  int receiver = -1;
};

/// In which order messages between two gpus are received. of_channel: in that of each channel, as in MSCCL. of_pair: in
/// that of all channels together, as in a schedule, where a pair of ranks has one.
enum class Fifo : std::uint8_t { of_channel, of_pair };

class Events {
 public:
  explicit Events(const MscclFile& file);

  [[nodiscard]] const MscclFile& file() const { return file_; }
  [[nodiscard]] int size() const { return static_cast<int>(events_.size()); }
  [[nodiscard]] const Event& at(int event) const { return events_[static_cast<std::size_t>(event)]; }
  [[nodiscard]] const ThreadBlock& block_of(int event) const;
  [[nodiscard]] const MscclStep& step_of(int event) const;
  [[nodiscard]] int pairs() const { return pairs_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  /// "gpu 2 tb 0 step 3 (rrs, line 14)"
  [[nodiscard]] std::string place(int event) const;

  /// An order of all events with `slots` messages at most on their way in each FIFO. Errors: refuted with the place of
  /// a step that can never be done.
  [[nodiscard]] Result<std::vector<int>> order(int slots, Fifo fifo) const;

 private:
  class Run;

  void match_messages();

  const MscclFile& file_;
  std::vector<Event> events_;
  std::vector<int> first_;  ///< [thread block, counted over all gpus]: its first event; one more for the end
  std::vector<Link> links_;
  int pairs_ = 0;
};

}  // namespace tutti::harness::exchange
