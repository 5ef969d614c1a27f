// SPDX-License-Identifier: Apache-2.0
// Mesh: the exchange of runners on several machines, each runner a process. Two runners of different machines have a
// connection of their own, beside the system under test. What a runner tells goes to all of these; what comes, it keeps
// on a board of its own, which nobody else writes. Hosts of one machine share their board as ever. Messages are sealed
// (impl/tcp/sealed_stream.h).
//
// A runner that does not wait does not look, so what is told to it stays in the connection. That is little: nobody gets
// further ahead of another runner than one exchange and a start or a barrier. A runner that waits to send does look:
// small buffers may not hold even that little.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "harness/measure/exchange.h"
#include "impl/tcp/sealed_stream.h"
#include "impl/tcp/secret.h"
#include "impl/types/descriptor.h"

namespace tutti::harness::measure {

struct MeshPlace {
  int runner = 0;             ///< whose end this is
  std::vector<int> machines;  ///< by runner
  tcp::Secret key;            ///< of the job
  std::string interface;      ///< the address at which this runner listens
  std::string address;        ///< where runner 0 awaits the others
  int listener = -1;          ///< runner 0: which listens there
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

class Mesh final : public Exchange {
 public:
  /// All runners call it; returns when this one has a connection to each runner of another machine. Errors: timeout
  /// naming the runners that are missing, mismatch, io.
  [[nodiscard]] static Result<std::unique_ptr<Mesh>> join(const MeshPlace& place);
  ~Mesh() override = default;
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  void tell(const Board& board, int runner, Part part) override;
  void look(const Board& board) override;
  [[nodiscard]] bool needs_look() const override { return true; }
  [[nodiscard]] bool is_aborted(const Board& board) const override { return shared_board().is_aborted(board); }
  [[nodiscard]] const Status& failure() const override { return failure_; }
  [[nodiscard]] Board seen(const Board& board, int runner) const override {
    return is_far(runner) ? Board(mirror_.get(), static_cast<int>(machines_.size())) : board;
  }
  [[nodiscard]] const std::vector<int>& machines() const override { return machines_; }
  [[nodiscard]] Result<ClockTrip> ask_clock(int runner, const RunnerClock& mine, const Board& board) override;
  void answer_clock(const RunnerClock* mine) override { clock_ = mine; }

 private:
  struct Peer {
    int runner = 0;
    tcp::SealedStream stream;
    bool is_gone = false;
  };
  struct Message;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  Mesh(int runner, std::vector<int> machines, std::chrono::nanoseconds timeout);
  [[nodiscard]] bool is_far(int runner) const {
    return machines_[static_cast<std::size_t>(runner)] != machines_[static_cast<std::size_t>(runner_)];
  }
  /// Returns when the kernel has all of it, or the peer is gone. Takes what comes while it waits.
  void send(Peer& peer, const Message& message, const void* payload);
  void take(Peer& peer);
  void take_all();
  /// Nothing more is taken from it, or sent.
  void lose(Peer& peer);
  void apply(Peer& peer, const Message& message, const std::byte* payload);

  int runner_;
  std::vector<int> machines_;
  std::chrono::nanoseconds timeout_;
  std::vector<Peer> peers_;
  Descriptor events_;
  Status failure_;                      ///< of a connection whose bytes were changed
  std::unique_ptr<void, Free> mirror_;  ///< the board of what others have told
  const RunnerClock* clock_ = nullptr;
  std::int64_t answer_ns_ = 0;  ///< to the question last asked
  bool has_answer_ = false;
};

}  // namespace tutti::harness::measure
