// SPDX-License-Identifier: Apache-2.0
// The links of one rank over TCP. A connection between two ranks is made when one of them first has something to say.
// Whoever polls moves everything: nothing here has a thread.
//
// What is told waits in a list for each link, by address: a slice lies in its slot until it is sent. The list is sent
// as soon as kEager bytes are owed, and when the rank has walked as far as it can. What the socket does not take stays,
// and no more can be told than there are slots. What comes goes to its slot at once: for all of it there is one.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "impl/tcp/greeting.h"
#include "impl/tcp/socket.h"
#include "impl/transports/met_world.h"
#include "impl/transports/tcp/frames.h"

namespace tutti::tcp {

inline constexpr std::size_t kEager = std::size_t{128} * 1024;  ///< owed bytes that are sent at once

class TcpNetwork;

class TcpLink final : public Link {
 public:
  TcpLink(TcpNetwork& network, int peer, Mirror& mirror);

  void publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) override;
  void release(ChannelOf channel, std::uint64_t count) override;
  void announce(int generation) override;

  /// For a network that moves its data elsewhere: says this, in order with all else; and who hears what the peer says.
  void tell(std::uint64_t number, Note note);
  void give_notes_to(TakeNote take_note) { reader_.give_notes_to(std::move(take_note)); }
  /// The peer has left, or the link has failed.
  [[nodiscard]] bool is_closed() const { return state_ == State::closed; }

 private:
  friend class TcpNetwork;
  enum class State : std::uint8_t {
    apart,       ///< nobody has said anything
    connecting,  ///< on my way
    greeting,    ///< there, as a client
    awaited,     ///< the peer is on its way here
    up,
    closed,  ///< the peer has left, or the link has failed
  };
  /// Bytes to be sent, in this order: the head, then the body, which stays where it is until the peer has it.
  struct Item {
    std::array<std::byte, sizeof(FrameHeader) + kLineOnTheWay> head;
    std::size_t head_bytes;
    std::span<const std::byte> body;
    [[nodiscard]] std::size_t size() const { return head_bytes + body.size(); }
  };
  void add(const FrameHeader& header, std::span<const std::byte> in_head, std::span<const std::byte> body);
  void add_counts();
  [[nodiscard]] bool owes_counts() const { return credits_[0].is_owed() || credits_[1].is_owed(); }
  [[nodiscard]] bool is_drained() const { return items_.empty() || state_ == State::closed; }
  /// Sends what the socket takes; true where that was something.
  bool send();
  /// Takes what has come; true where that was something.
  bool receive();

  TcpNetwork& network_;
  int peer_;
  Mirror& mirror_;
  State state_ = State::apart;
  Descriptor socket_;
  std::unique_ptr<Greeting> greeting_;
  bool has_gone_ = false;
  int hung_up_ = 0;  ///< how often the peer did, at the greeting
  std::deque<Item> items_;
  std::size_t sent_of_first_ = 0;
  std::size_t owed_ = 0;
  bool is_blocked_ = false;  ///< the socket took less than it was given
  bool is_dirty_ = false;    ///< in the network's list of those that owe something
  std::array<Credit, kChannelsOfPair> credits_;
  std::array<std::uint64_t, kChannelsOfPair> published_{};
  FrameReader reader_;
};

class TcpNetwork final : public Network {
 public:
  struct Options {
    std::string interface = "127.0.0.1";
    Secret key;  ///< of the job
  };
  /// Listens. Errors: io.
  [[nodiscard]] static Result<std::unique_ptr<TcpNetwork>> make(const Outlook& outlook, const Options& options);
  /// Says goodbye: what was told goes out first, for some time at most.
  ~TcpNetwork() override;

  [[nodiscard]] const std::string& address() const override { return listener_.address; }
  void set_addresses(std::vector<std::string> addresses) override { addresses_ = std::move(addresses); }

  [[nodiscard]] TcpLink& link(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }
  bool receive() override;
  bool send(Mood mood) override;
  [[nodiscard]] bool is_drained() const override;
  [[nodiscard]] const Status& failure() const override { return failure_; }
  [[nodiscard]] int failed_rank() const override { return failed_rank_; }
  [[nodiscard]] bool has_gone(int rank) const override { return links_[static_cast<std::size_t>(rank)]->has_gone_; }
  void lose(int rank) override { mourn(rank, "the world has lost it"); }
  [[nodiscard]] int descriptor() const override { return events_.get(); }
  void abort(int of, const std::string& text) override;
  /// "rank 3 on host 1 `how`", unless something has failed before.
  void fail(int rank, Code code, const std::string& how);
  /// As that rank, or another one for it, says it, unless something has failed before.
  void hear_of_failure(int rank, const std::string& text);
  /// "rank 3 on host 1 went: `how`".
  void mourn(int rank, const std::string& how);

  /// Connections that are open, for tests.
  [[nodiscard]] std::size_t connections() const;

 private:
  friend class TcpLink;
  /// Somebody who has connected and has not shown that it is of this job.
  struct Arrival {
    Descriptor socket;
    Greeting greeting;
    std::chrono::steady_clock::time_point since;
  };
  TcpNetwork(const Outlook& outlook, const Options& options)
      : domain_(outlook.domain), rank_(outlook.rank), key_(options.key) {}

  void connect(TcpLink& link);
  /// A connection that is made, and the greeting over it, go on.
  void go_on(TcpLink& link);
  void take_arrivals();
  void go_on(std::list<Arrival>::iterator arrival);
  void drop_silent_arrivals();
  /// The arrival is a rank that this one has a link to.
  void admit(std::list<Arrival>::iterator arrival);
  void become_up(TcpLink& link, Descriptor socket);
  void watch(int socket, std::uint64_t what, bool also_writable);
  void rewatch(int socket, std::uint64_t what, bool also_writable);
  void mark_dirty(TcpLink& link);
  /// The peer is gone, by what its address answers.
  void give_up(TcpLink& link, const std::string& how);
  void say_goodbye();

  const Domain& domain_;  // for its names
  int rank_;
  Secret key_;
  Listener listener_;
  Descriptor events_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<TcpLink>> links_;  // [rank], null on this host
  std::vector<TcpLink*> dirty_;                  // that owe bytes or counts
  std::list<Arrival> arrivals_;
  std::vector<std::byte> stage_;
  int idle_looks_ = 0;
  Status failure_;
  int failed_rank_ = -1;
  bool has_aborted_ = false;
  std::string abort_text_;  // on its way over the links
};

}  // namespace tutti::tcp
