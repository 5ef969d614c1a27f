// SPDX-License-Identifier: Apache-2.0
// The links of one rank over RDMA. What a rank has published, released or announced is written by its device into the
// peer's mirror (mirror.h), where it lands while nobody polls. Beside the data a connection of TCP (tcp/network.h) is
// made when one of two ranks first has something to say. Over it they tell each other where to write, that they have
// failed, and goodbye; and the kernel closes it when a process dies.
//
// Each thing that is told is two writes of one queue pair: all but its word, then its word, an aligned one of 8 bytes.
// It is relied on that
// - writes of one queue pair are carried out in their order, so that the word is seen after what it speaks for. Memory
//   is registered without relaxed ordering;
// - a word of 8 bytes is written whole, as adapters and the software one do;
// - a write that arrives twice is carried out once. So the source may change when the peer's count says that the slot
//   is free: it has been read then.
// Lines and words travel inline: their places may be written again at once.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "impl/transports/tcp/network.h"
#include "impl/transports/verbs/queue_pair.h"

namespace tutti::verbs {

class VerbsNetwork;

class VerbsLink final : public Link {
 public:
  VerbsLink(VerbsNetwork& network, int peer, Mirror& mirror, tcp::TcpLink& beside);

  void publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) override;
  void release(ChannelOf channel, std::uint64_t count) override;
  void announce(int generation) override;

 private:
  friend class VerbsNetwork;
  /// A write that there was no room for yet.
  struct Waiting {
    Write write;
    std::array<std::byte, kInline> copy;  ///< of what is written inline
  };
  /// The peer's note of that number.
  void take(std::uint64_t number, tcp::Note note);
  void say_hello();
  void add(std::span<const std::byte> from, std::size_t to, bool is_stable);
  void add_counts();
  /// What is said in the order of these calls: all but the word at its front, then that.
  void add_with_word_last(std::span<const std::byte> all, std::size_t to, bool is_stable);
  bool post();
  void reap();
  void break_off(const Status& why);
  [[nodiscard]] bool owes_counts() const { return credits_[0].is_owed() || credits_[1].is_owed(); }
  [[nodiscard]] bool is_over() const { return is_broken_ || beside_.is_closed(); }
  [[nodiscard]] bool is_drained() const { return waiting_.empty() || is_over(); }
  /// Whether the peer has all that was told. Requires: is_drained.
  [[nodiscard]] bool has_arrived();

  VerbsNetwork& network_;
  int peer_;
  Mirror& mirror_;
  tcp::TcpLink& beside_;
  std::unique_ptr<QueuePair> pair_;  ///< null before there is something to say
  bool is_up_ = false;               ///< the peer takes what is written
  bool is_broken_ = false;
  bool is_dirty_ = false;  ///< in the network's list of those that owe something
  std::deque<Waiting> waiting_;
  std::array<Credit, kChannelsOfPair> credits_;
};

class VerbsNetwork final : public Network {
 public:
  /// Errors: unavailable where the place has no device; io.
  [[nodiscard]] static Result<std::unique_ptr<VerbsNetwork>> make(const NetworkPlace& place);
  /// Says goodbye once the peers have what was told, or after some time.
  ~VerbsNetwork() override;

  [[nodiscard]] const std::string& address() const override { return beside_->address(); }
  void set_addresses(std::vector<std::string> addresses) override { beside_->set_addresses(std::move(addresses)); }
  [[nodiscard]] Link& link(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }
  /// Data comes by itself. So this is about what the peers say beside it, and it is not often looked for.
  bool receive() override;
  bool send(Mood mood) override;
  [[nodiscard]] bool is_drained() const override;
  [[nodiscard]] const Status& failure() const override { return beside_->failure(); }
  [[nodiscard]] int failed_rank() const override { return beside_->failed_rank(); }
  [[nodiscard]] bool has_gone(int rank) const override { return beside_->has_gone(rank); }
  void lose(int rank) override { beside_->lose(rank); }
  void abort(int of, const std::string& text) override { beside_->abort(of, text); }

 private:
  friend class VerbsLink;
  explicit VerbsNetwork(const NetworkPlace& place) : rank_(place.outlook.rank) {}
  void mark_dirty(VerbsLink& link);
  bool look();

  int rank_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<tcp::TcpNetwork> beside_;
  std::vector<std::unique_ptr<VerbsLink>> links_;  // [rank], null on this host
  std::vector<VerbsLink*> dirty_;
  std::vector<VerbsLink*> open_;  // that have a queue pair
  int connecting_ = 0;            // of those, that are not up
  int looks_ = 0;
  int idle_looks_ = 0;
};

}  // namespace tutti::verbs
