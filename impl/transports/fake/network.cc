// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/fake/network.h"

#include <algorithm>
#include <cstring>

namespace tutti::fake {
namespace {

constexpr int kIdleBeforeCounts = 4;  ///< looks in vain before counts are told that nobody has asked for

class FakeNetwork;

class FakeLink final : public Link {
 public:
  FakeLink(FakeNetwork& network, int peer, Queue& out, Mirror& mirror, const Mishap& mishap)
      : network_(network), peer_(peer), out_(out), mirror_(mirror), mishap_(mishap) {}

  void publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) override;
  void release(ChannelOf channel, std::uint64_t count) override {
    Credit& credit = credits_[static_cast<std::size_t>(channel)];
    credit.due = count;
    if (credit.is_urgent(mirror_.slots(channel))) tell_counts();
  }
  void announce(int generation) override;

  bool tell_counts() {
    bool has_told = false;
    for (const ChannelOf channel : {ChannelOf::collectives, ChannelOf::sends}) {
      Credit& credit = credits_[static_cast<std::size_t>(channel)];
      if (!credit.is_owed()) continue;
      credit.told = credit.due;
      if (counted_++ == mishap_.lost_count) continue;
      out_.push({.kind = Frame::Kind::count, .channel = channel, .number = credit.due});
      has_told = true;
    }
    return has_told;
  }
  [[nodiscard]] bool owes_counts() const { return credits_[0].is_owed() || credits_[1].is_owed(); }
  void push(Frame frame) { out_.push(std::move(frame)); }
  void detach() { out_.detach(); }
  [[nodiscard]] std::uint64_t published(ChannelOf channel) const {
    return published_[static_cast<std::size_t>(channel)];
  }
  [[nodiscard]] Mirror& mirror() { return mirror_; }
  /// Of a slice that has arrived in part.
  bool is_halfway = false;
  bool has_left = false;

 private:
  FakeNetwork& network_;
  int peer_;
  Queue& out_;
  Mirror& mirror_;
  const Mishap& mishap_;
  std::array<Credit, kChannelsOfPair> credits_;
  std::array<std::uint64_t, kChannelsOfPair> published_{};
  int sliced_ = 0, lined_ = 0, counted_ = 0;
};

class FakeNetwork final : public Network {
 public:
  explicit FakeNetwork(const Outlook& outlook, const Weather& weather)
      : domain_(outlook.domain),
        mirrors_(outlook.mirrors),
        rank_(outlook.rank),
        mishap_(weather.mishap),
        random_(weather.seed * 7919 + static_cast<std::uint64_t>(outlook.rank)) {}
  /// Of a group, whose first rank draws its number.
  FakeNetwork(const Outlook& outlook, const Weather& weather, std::shared_ptr<Air> world)
      : FakeNetwork(outlook, weather) {
    if (rank_ == 0) address_ = std::to_string(world->draw_group());
    world_ = std::move(world);
  }
  void join(std::shared_ptr<Air> air) {
    air_ = std::move(air);
    for (int peer = 0; peer < domain_.shape().ranks; ++peer) {
      Mirror* const mirror = mirrors_[static_cast<std::size_t>(peer)].get();
      links_.push_back(mirror == nullptr
                           ? nullptr
                           : std::make_unique<FakeLink>(*this, peer, air_->queue(rank_, peer), *mirror, mishap_));
      if (mirror != nullptr && mishap_.goes) fail(peer, "went");
    }
  }
  ~FakeNetwork() override {
    for (const auto& link : links_) {
      if (link == nullptr) continue;
      link->push({.kind = Frame::Kind::bye});
      link->detach();
    }
  }
  [[nodiscard]] const std::string& address() const override { return address_; }
  void set_addresses(std::vector<std::string> addresses) override {
    const std::uint64_t number = std::stoull(addresses.front());
    random_.seed(random_() + number);
    join(world_->of_group(number, domain_.shape().ranks));
  }
  [[nodiscard]] Link& link(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }

  bool receive() override {
    bool has_come = false;
    for (int peer = 0; peer < static_cast<int>(links_.size()); ++peer) {
      FakeLink* const link = links_[static_cast<std::size_t>(peer)].get();
      if (link == nullptr || random_() % 3 == 0) continue;
      has_come |= air_->queue(peer, rank_).pull(static_cast<int>(random_() % 3 + 1), [&](const Frame& frame) {
        return take(peer, *link, frame);
      });
    }
    if (has_come) idle_looks_ = 0;
    return has_come;
  }
  bool send(Mood mood) override {
    if (mood == Mood::busy) {
      idle_looks_ = 0;
      return false;
    }
    if (++idle_looks_ < kIdleBeforeCounts) return false;
    bool has_told = false;
    for (const auto& link : links_) has_told |= link != nullptr && link->tell_counts();
    return has_told;
  }
  [[nodiscard]] bool is_drained() const override { return true; }
  [[nodiscard]] bool is_quiet() const override {
    for (int peer = 0; peer < static_cast<int>(links_.size()); ++peer) {
      const auto& link = links_[static_cast<std::size_t>(peer)];
      if (link != nullptr && (link->owes_counts() || !air_->queue(peer, rank_).is_empty())) return false;
    }
    return true;
  }
  [[nodiscard]] const Status& failure() const override { return failure_; }
  [[nodiscard]] int failed_rank() const override { return failed_rank_; }
  void abort(int of, const std::string& text) override {
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    for (const auto& link : links_) {
      if (link == nullptr) continue;
      link->push({.kind = Frame::Kind::abort,
                  .number = static_cast<std::uint64_t>(of),
                  .bytes = std::vector(bytes, bytes + text.size())});
    }
  }
  void lose(int rank) override { fail(rank, "went"); }
  void fail(int rank, const char* how) { fail(rank, error(Code::aborted, "{} {}", domain_.name_of(rank), how)); }
  void fail(int rank, Status why) {
    if (!failure_.is_ok()) return;
    failed_rank_ = rank;
    failure_ = std::move(why);
  }

 private:
  /// False: it has arrived in part.
  bool take(int peer, FakeLink& link, const Frame& frame) {
    Mirror& mirror = link.mirror();
    switch (frame.kind) {
      case Frame::Kind::slice:
        return take_slice(peer, link, frame);
      case Frame::Kind::count:
        TUTTI_ASSERT(mirror.is_possible_count(frame.channel, frame.number, link.published(frame.channel)),
                     "rank {} says that it has released {} slices", peer, frame.number);
        mirror.take_count(frame.channel, frame.number);
        return true;
      case Frame::Kind::line:
        mirror.take_line(static_cast<int>(frame.number), std::span<const std::byte, kLineOnTheWay>(frame.bytes));
        return true;
      case Frame::Kind::abort:
        fail(static_cast<int>(frame.number),
             {Code::aborted, std::string(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size())});
        return true;
      case Frame::Kind::bye:
        link.has_left = true;
        return true;
    }
    return true;
  }
  bool take_slice(int peer, FakeLink& link, const Frame& frame) {
    Mirror& mirror = link.mirror();
    const std::span<const std::byte> slot = frame.bytes.empty() ? frame.slot : std::span(frame.bytes);
    const auto payload = slot.subspan(sizeof(SlotHeader));
    const std::size_t half = payload.size() / 2;
    if (!link.is_halfway && mishap_.lost_slice >= 0 && !mirror.is_next(frame.channel, frame.number)) return true;
    TUTTI_ASSERT(link.is_halfway || mirror.is_next(frame.channel, frame.number),
                 "rank {} sends slice {}, which has no free slot at rank {}", peer, frame.number, rank_);
    std::byte* const to = mirror.payload_of(frame.channel, frame.number);
    if (!link.is_halfway && half > 0) {
      std::memcpy(to, payload.data(), half);
      link.is_halfway = true;
      return false;
    }
    if (payload.size() > half) std::memcpy(to + half, payload.data() + half, payload.size() - half);
    link.is_halfway = false;
    mirror.take_slice(frame.channel, frame.number, slot.first<sizeof(SlotHeader)>());
    return true;
  }

  const Domain& domain_;
  const std::vector<std::unique_ptr<Mirror>>& mirrors_;
  std::string address_;         // of the first rank of a group: the group's number
  std::shared_ptr<Air> world_;  // of a group: that of its world
  std::shared_ptr<Air> air_;
  int rank_;
  Mishap mishap_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<FakeLink>> links_;  // [rank]
  int idle_looks_ = 0;
  Status failure_;
  int failed_rank_ = -1;
};

void FakeLink::publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) {
  if (has_left) return network_.fail(peer_, "has left");
  tell_counts();
  published_[static_cast<std::size_t>(channel)] = slice;
  if (sliced_++ == mishap_.lost_slice) return;
  out_.push({.kind = Frame::Kind::slice,
             .channel = channel,
             .number = slice,
             .slot = mirror_.published(channel, slice, bytes)});
}

void FakeLink::announce(int generation) {
  if (has_left) return network_.fail(peer_, "has left");
  tell_counts();
  if (lined_++ == mishap_.lost_line) return;
  const auto* const line = reinterpret_cast<const std::byte*>(&mirror_.mine(generation));
  out_.push({.kind = Frame::Kind::line,
             .number = static_cast<std::uint64_t>(generation),
             .bytes = std::vector(line, line + kLineOnTheWay)});
}

}  // namespace

void Queue::push(Frame frame) {
  const std::lock_guard lock(mutex_);
  frames_.push_back(std::move(frame));
  waiting_.fetch_add(1, std::memory_order_release);
}

void Queue::detach() {
  const std::lock_guard lock(mutex_);
  for (Frame& frame : frames_) {
    if (frame.kind == Frame::Kind::slice) frame.bytes.assign(frame.slot.begin(), frame.slot.end());
  }
}

std::unique_ptr<Network> make_network(const std::shared_ptr<Air>& air, const Outlook& outlook, const Weather& weather) {
  auto network = std::make_unique<FakeNetwork>(outlook, weather);
  network->join(air);
  return network;
}

std::unique_ptr<Network> make_group_network(const std::shared_ptr<Air>& world, const Outlook& outlook,
                                            const Weather& weather) {
  return std::make_unique<FakeNetwork>(outlook, weather, world);
}

std::shared_ptr<Air> Air::of_group(std::uint64_t number, int ranks) {
  const std::lock_guard lock(mutex_);
  OfGroup& group = groups_.try_emplace(number, OfGroup{std::make_shared<Air>(ranks), ranks}).first->second;
  std::shared_ptr<Air> air = group.air;
  if (--group.left == 0) groups_.erase(number);
  return air;
}

}  // namespace tutti::fake
