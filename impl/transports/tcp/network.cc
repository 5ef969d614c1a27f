// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/tcp/network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>

#include "impl/types/printable.h"

namespace tutti::tcp {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Small frames of a whole round fit; a longer payload goes to its slot without a stop here.
constexpr std::size_t kStage = std::size_t{16} * 1024;
constexpr std::size_t kMostParts = 64;  // of one write
constexpr int kMostReads = 8;           // of one link in one look
constexpr int kMostEvents = 32;
constexpr int kMostHangUps = 8;       // of a peer that has not greeted yet
constexpr int kIdleBeforeCounts = 4;  // looks in vain before counts are told that nobody has asked for
constexpr auto kPatienceWithStrangers = 2s;
constexpr auto kPatienceWithGoodbyes = 2s;
constexpr auto kPatienceAfterFailure = 100ms;

/// What an event is about.
constexpr std::uint64_t kListener = ~std::uint64_t{0};
constexpr std::uint64_t kArrival = std::uint64_t{1} << 32U;  // and the socket's number; else the rank of a link

}  // namespace

// ---- one link

TcpLink::TcpLink(TcpNetwork& network, int peer, Mirror& mirror)
    : network_(network), peer_(peer), mirror_(mirror), reader_(mirror, published_) {}

void TcpLink::add(const FrameHeader& header, std::span<const std::byte> in_head, std::span<const std::byte> body) {
  Item& item = items_.emplace_back();
  std::memcpy(item.head.data(), &header, sizeof header);
  if (!in_head.empty()) std::memcpy(item.head.data() + sizeof header, in_head.data(), in_head.size());
  item.head_bytes = sizeof header + in_head.size();
  item.body = body;
  owed_ += item.size();
  network_.mark_dirty(*this);
}

void TcpLink::add_counts() {
  for (const ChannelOf channel : {ChannelOf::collectives, ChannelOf::sends}) {
    Credit& credit = credits_[static_cast<std::size_t>(channel)];
    if (!credit.is_owed()) continue;
    credit.told = credit.due;
    add({.kind = Kind::count, .channel = channel, .number = credit.due}, {}, {});
  }
}

void TcpLink::publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) {
  if (state_ == State::closed) return network_.fail(peer_, Code::aborted, "has left");
  add_counts();
  published_[static_cast<std::size_t>(channel)] = slice;
  const auto slot = mirror_.published(channel, slice, bytes);
  add({.bytes = static_cast<std::uint32_t>(slot.size()), .kind = Kind::slice, .channel = channel, .number = slice}, {},
      slot);
  if (owed_ >= kEager && !is_blocked_) send();
}

void TcpLink::release(ChannelOf channel, std::uint64_t count) {
  Credit& credit = credits_[static_cast<std::size_t>(channel)];
  credit.due = count;
  if (state_ == State::closed) return;
  if (credit.is_urgent(mirror_.slots(channel))) return add_counts();
  network_.mark_dirty(*this);
}

void TcpLink::announce(int generation) {
  if (state_ == State::closed) return network_.fail(peer_, Code::aborted, "has left");
  add_counts();
  const auto* const line = reinterpret_cast<const std::byte*>(&mirror_.mine(generation));
  add({.bytes = kLineOnTheWay, .kind = Kind::line, .number = static_cast<std::uint64_t>(generation)},
      {line, kLineOnTheWay}, {});
}

void TcpLink::tell(std::uint64_t number, Note note) {
  if (state_ == State::closed) return;
  add({.bytes = kNoteBytes, .kind = Kind::note, .number = number}, note, {});
}

bool TcpLink::send() {
  if (state_ != State::up) return false;
  bool has_moved = false;
  while (!items_.empty()) {
    std::array<iovec, kMostParts> parts;
    std::size_t count = 0, offered = 0, skip = sent_of_first_;
    for (const Item& item : items_) {
      if (count + 2 > parts.size()) break;
      for (const std::span<const std::byte> part : {std::span(item.head).first(item.head_bytes), item.body}) {
        const std::size_t skipped = std::min(skip, part.size());
        skip -= skipped;
        if (part.size() == skipped) continue;
        parts[count++] = {.iov_base = const_cast<std::byte*>(part.data() + skipped), .iov_len = part.size() - skipped};
        offered += part.size() - skipped;
      }
    }
    const Moved moved = write_some(socket_.get(), {parts.data(), count});
    if (moved.has_ended) {
      // What the peer said last may still lie here: it may have said goodbye.
      while (state_ == State::up && receive()) {
      }
      if (state_ == State::up) network_.mourn(peer_, std::strerror(moved.error));
      state_ = State::closed;
      socket_.close();
      items_.clear();
      owed_ = 0;
      return has_moved;
    }
    has_moved |= moved.bytes > 0;
    owed_ -= moved.bytes;
    for (sent_of_first_ += moved.bytes; !items_.empty() && sent_of_first_ >= items_.front().size();) {
      sent_of_first_ -= items_.front().size();
      items_.pop_front();
    }
    if (moved.bytes == offered) continue;
    if (!is_blocked_) network_.rewatch(socket_.get(), static_cast<std::uint64_t>(peer_), true);
    is_blocked_ = true;
    return has_moved;
  }
  if (is_blocked_) network_.rewatch(socket_.get(), static_cast<std::uint64_t>(peer_), false);
  is_blocked_ = false;
  return has_moved;
}

bool TcpLink::receive() {
  bool has_moved = false;
  for (int reads = 0; reads < kMostReads && state_ == State::up; ++reads) {
    const std::span<std::byte> wanted = reader_.wanted();
    std::vector<std::byte>& stage = network_.stage_;
    const std::array<iovec, 2> parts{iovec{.iov_base = wanted.data(), .iov_len = wanted.size()},
                                     iovec{.iov_base = stage.data(), .iov_len = stage.size()}};
    const Moved moved = read_some(socket_.get(), wanted.empty() ? std::span(parts).subspan(1) : std::span(parts));
    if (moved.bytes > 0) {
      has_moved = true;
      const std::size_t direct = std::min(moved.bytes, wanted.size());
      if (direct > 0) reader_.put(direct);
      const Status taken = reader_.take(std::span(stage).first(moved.bytes - direct));
      if (!taken.is_ok()) {
        network_.fail(peer_, taken.code(),
                      fmt::format("has a link that carries nothing any more: {}", taken.message()));
        return true;
      }
      if (reader_.aborted_rank() >= 0) {
        const int rank = reader_.aborted_rank();
        network_.hear_of_failure(rank < static_cast<int>(network_.links_.size()) ? rank : peer_, reader_.abort_text());
      }
      if (moved.bytes < wanted.size() + stage.size()) break;
      continue;
    }
    if (!moved.has_ended) break;
    has_moved = true;
    state_ = State::closed;
    socket_.close();
    if (reader_.has_left() && !reader_.is_within_frame()) break;
    network_.mourn(peer_, moved.error != 0 ? std::strerror(moved.error) : "its connection ended without a goodbye");
  }
  return has_moved;
}

// ---- all of them

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::make(const Outlook& outlook, const Options& options) {
  std::unique_ptr<TcpNetwork> network(new TcpNetwork(outlook, options));
  network->events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!network->events_.is_open()) return error(Code::io, "cannot watch sockets: {}", std::strerror(errno));
  TUTTI_ASSIGN_OR_RETURN(network->listener_, listen_on(options.interface));
  network->watch(network->listener_.socket.get(), kListener, false);
  network->stage_.resize(kStage);
  for (int rank = 0; rank < outlook.domain.shape().ranks; ++rank) {
    Mirror* const mirror = outlook.mirrors[static_cast<std::size_t>(rank)].get();
    network->links_.push_back(mirror == nullptr ? nullptr : std::make_unique<TcpLink>(*network, rank, *mirror));
  }
  return network;
}

TcpNetwork::~TcpNetwork() { say_goodbye(); }

void TcpNetwork::watch(int socket, std::uint64_t what, bool also_writable) {
  epoll_event event{.events = EPOLLIN | (also_writable ? EPOLLOUT : 0U), .data = {.u64 = what}};
  epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket, &event);
}

void TcpNetwork::rewatch(int socket, std::uint64_t what, bool also_writable) {
  epoll_event event{.events = EPOLLIN | (also_writable ? EPOLLOUT : 0U), .data = {.u64 = what}};
  epoll_ctl(events_.get(), EPOLL_CTL_MOD, socket, &event);
}

void TcpNetwork::mark_dirty(TcpLink& link) {
  if (link.is_dirty_) return;
  link.is_dirty_ = true;
  dirty_.push_back(&link);
}

void TcpNetwork::fail(int rank, Code code, const std::string& how) {
  if (rank != rank_) {
    const auto& link = links_[static_cast<std::size_t>(rank)];
    if (link != nullptr && code != Code::aborted) {
      link->state_ = TcpLink::State::closed;
      link->socket_.close();
    }
  }
  if (!failure_.is_ok()) return;
  failed_rank_ = rank;
  failure_ = error(code, "{} {}", domain_.name_of(rank), how);
}

void TcpNetwork::hear_of_failure(int rank, const std::string& text) {
  if (text.empty()) return fail(rank, Code::aborted, "failed");
  if (!failure_.is_ok()) return;
  failed_rank_ = rank;
  failure_ = Status(Code::aborted, printable(text));
}

void TcpNetwork::mourn(int rank, const std::string& how) {
  links_[static_cast<std::size_t>(rank)]->has_gone_ = true;
  fail(rank, Code::aborted, "went: " + how);
}

void TcpNetwork::give_up(TcpLink& link, const std::string& how) {
  link.state_ = TcpLink::State::closed;
  link.socket_.close();
  mourn(link.peer_, how);
}

bool TcpNetwork::receive() {
  std::array<epoll_event, kMostEvents> events;
  const int count = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool has_come = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t what = events[static_cast<std::size_t>(i)].data.u64;
    if (what == kListener) {
      take_arrivals();
    } else if ((what & kArrival) != 0) {
      const auto socket = static_cast<int>(what & (kArrival - 1));
      const auto arrival =
          std::ranges::find_if(arrivals_, [socket](const Arrival& one) { return one.socket.get() == socket; });
      if (arrival != arrivals_.end()) go_on(arrival);
    } else {
      TcpLink& link = *links_[what];
      if (link.state_ == TcpLink::State::up) {
        if (link.is_blocked_ && (events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) link.send();
        has_come |= link.receive();
      } else {
        go_on(link);
      }
    }
  }
  if (!arrivals_.empty()) drop_silent_arrivals();
  if (has_come) idle_looks_ = 0;
  return has_come;
}

bool TcpNetwork::send(Mood mood) {
  if (dirty_.empty()) return false;
  if (mood == Mood::busy) idle_looks_ = 0;
  const bool tells_counts = mood == Mood::idle && ++idle_looks_ >= kIdleBeforeCounts;
  bool has_moved = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    TcpLink& link = *dirty_[i];
    if (tells_counts) link.add_counts();
    if (!link.items_.empty()) {
      if (link.state_ == TcpLink::State::apart) connect(link);
      if (!link.is_blocked_) has_moved |= link.send();
    }
    const bool is_still = link.state_ != TcpLink::State::closed && (!link.items_.empty() || link.owes_counts());
    link.is_dirty_ = is_still;
    if (is_still) dirty_[kept++] = &link;
  }
  dirty_.resize(kept);
  return has_moved;
}

bool TcpNetwork::is_drained() const {
  return std::ranges::all_of(dirty_, [](const TcpLink* link) { return link->is_drained(); });
}

void TcpNetwork::abort(int of, const std::string& text) {
  if (has_aborted_) return;
  has_aborted_ = true;
  abort_text_ = text.substr(0, kMostAbortText);
  for (const auto& link : links_) {
    if (link == nullptr || link->state_ != TcpLink::State::up) continue;
    link->add({.bytes = static_cast<std::uint32_t>(abort_text_.size()),
               .kind = Kind::abort,
               .number = static_cast<std::uint64_t>(of)},
              {}, std::as_bytes(std::span(abort_text_)));
    link->send();
  }
}

std::size_t TcpNetwork::connections() const {
  const auto is_open = [](const auto& link) { return link != nullptr && link->socket_.is_open(); };
  return static_cast<std::size_t>(std::ranges::count_if(links_, is_open)) + arrivals_.size();
}

// ---- how connections are made

void TcpNetwork::connect(TcpLink& link) {
  const std::string& address = addresses_[static_cast<std::size_t>(link.peer_)];
  auto socket = connect_to(address);
  if (!socket.is_ok()) return fail(link.peer_, socket.status().code(), "is not reached: " + socket.status().message());
  link.socket_ = std::move(socket).value();
  link.state_ = TcpLink::State::connecting;
  watch(link.socket_.get(), static_cast<std::uint64_t>(link.peer_), true);
}

void TcpNetwork::go_on(TcpLink& link) {
  const std::string& address = addresses_[static_cast<std::size_t>(link.peer_)];
  const int socket = link.socket_.get();
  if (link.state_ == TcpLink::State::connecting) {
    if (const int failure = error_of(socket); failure != 0) {
      // It listened, or its address would not be known.
      if (failure == ECONNREFUSED) return give_up(link, fmt::format("no process listens at {} any more", address));
      return fail(link.peer_, Code::io, fmt::format("is not reached at {}: {}", address, std::strerror(failure)));
    }
    const auto nonce = draw_nonce();
    if (!nonce.is_ok()) return fail(link.peer_, Code::io, "is not greeted: " + nonce.status().message());
    const Claim claim{
        .role = Role::link, .from = static_cast<std::uint32_t>(rank_), .to = static_cast<std::uint32_t>(link.peer_)};
    link.greeting_ = std::make_unique<Greeting>(Greeting::of_client(key_, nonce.value(), claim));
    link.state_ = TcpLink::State::greeting;
  }
  if (link.state_ != TcpLink::State::greeting) return;
  switch (link.greeting_->step(socket)) {
    case Greeting::State::failed:
      if (link.greeting_->has_ended() && ++link.hung_up_ < kMostHangUps) {
        link.socket_.close();  // it had no room for a guest, or is gone, which the next call shows
        return connect(link);
      }
      if (link.greeting_->has_ended()) return give_up(link, fmt::format("{} hung up at the greeting", address));
      return fail(link.peer_, Code::io,
                  fmt::format("is not at {}: who is there did not prove that it is of this job", address));
    case Greeting::State::done:
      if (link.greeting_->verdict() == Verdict::welcome) return become_up(link, std::move(link.socket_));
      link.socket_.close();
      link.state_ = TcpLink::State::awaited;
      return;
    default:
      return rewatch(socket, static_cast<std::uint64_t>(link.peer_), link.greeting_->wants_to_write());
  }
}

void TcpNetwork::become_up(TcpLink& link, Descriptor socket) {
  link.socket_ = std::move(socket);
  link.greeting_.reset();
  link.state_ = TcpLink::State::up;
  link.is_blocked_ = false;
  rewatch(link.socket_.get(), static_cast<std::uint64_t>(link.peer_), false);
  if (!link.items_.empty()) link.send();
}

void TcpNetwork::take_arrivals() {
  constexpr int kMostAtOnce = 32;
  for (int i = 0; i < kMostAtOnce && make_room(arrivals_); ++i) {
    Descriptor socket = accept_from(listener_.socket.get());
    if (!socket.is_open()) return;
    const auto nonce = draw_nonce();
    if (!nonce.is_ok()) return;
    watch(socket.get(), kArrival | static_cast<std::uint64_t>(socket.get()), false);
    arrivals_.push_back({.socket = std::move(socket),
                         .greeting = Greeting::of_server(key_, nonce.value(), Role::link),
                         .since = Clock::now()});
    go_on(std::prev(arrivals_.end()));
  }
}

void TcpNetwork::drop_silent_arrivals() {
  const auto now = Clock::now();
  std::erase_if(arrivals_, [now](const Arrival& one) { return now - one.since > kPatienceWithStrangers; });
}

void TcpNetwork::go_on(std::list<Arrival>::iterator arrival) {
  const int socket = arrival->socket.get();
  if (arrival->greeting.step(socket) == Greeting::State::claimed) {
    const Claim& claim = arrival->greeting.claim();
    const bool is_for_me =
        claim.to == static_cast<std::uint32_t>(rank_) && claim.from < links_.size() && links_[claim.from] != nullptr;
    if (!is_for_me) return void(arrivals_.erase(arrival));
    const TcpLink& link = *links_[claim.from];
    const bool is_mine_on_its_way =
        link.state_ == TcpLink::State::connecting || link.state_ == TcpLink::State::greeting;
    const bool is_there = link.state_ == TcpLink::State::up || link.state_ == TcpLink::State::closed;
    if (is_there) return void(arrivals_.erase(arrival));
    // Of two that meet half way the one of the lower rank stays. That rank alone decides.
    arrival->greeting.answer(is_mine_on_its_way && rank_ < link.peer_ ? Verdict::crossed : Verdict::welcome);
    arrival->greeting.step(socket);
  }
  switch (arrival->greeting.state()) {
    case Greeting::State::failed:
      return void(arrivals_.erase(arrival));
    case Greeting::State::done:
      return admit(arrival);
    default:
      return rewatch(socket, kArrival | static_cast<std::uint64_t>(socket), arrival->greeting.wants_to_write());
  }
}

void TcpNetwork::admit(std::list<Arrival>::iterator arrival) {
  if (arrival->greeting.verdict() == Verdict::welcome) {
    TcpLink& link = *links_[arrival->greeting.claim().from];
    if (link.state_ != TcpLink::State::up) {
      link.socket_.close();
      become_up(link, std::move(arrival->socket));
    }
  }
  arrivals_.erase(arrival);
}

/// A close would throw away what the other end has not got yet, where something lies unread here. So the rank reads on
/// until the others' systems have all of it.
void TcpNetwork::say_goodbye() {
  const auto end = Clock::now() + (failure_.is_ok() ? std::chrono::milliseconds(kPatienceWithGoodbyes)
                                                    : std::chrono::milliseconds(kPatienceAfterFailure));
  for (const auto& link : links_) {
    if (link != nullptr && link->state_ == TcpLink::State::up) link->add({.kind = Kind::bye}, {}, {});
  }
  const auto is_out = [](const std::unique_ptr<TcpLink>& link) {
    if (link == nullptr || link->state_ != TcpLink::State::up) return true;
    if (!link->items_.empty()) return false;
    shutdown(link->socket_.get(), SHUT_WR);
    int unsent = 0;
    return ioctl(link->socket_.get(), SIOCOUTQ, &unsent) != 0 || unsent == 0;
  };
  for (;;) {
    send(Mood::busy);
    receive();
    if (std::ranges::all_of(links_, is_out) || Clock::now() > end) return;
    std::this_thread::yield();
  }
}

}  // namespace tutti::tcp
