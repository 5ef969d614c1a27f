// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/verbs/network.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

namespace tutti::verbs {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kLooksBetweenNotes = 32;   // a look at sockets is a system call; at memory it is a load
constexpr int kIdleBeforeCounts = 4;     // looks in vain before counts are told that nobody has asked for
constexpr auto kPatienceWithPeers = 4s;  // to take what was told: longer than a device tries
constexpr auto kPatienceAfterFailure = 100ms;

// ---- what is said beside: in this order, by both

constexpr std::uint64_t kHello = 1;  // where to write, and who writes
constexpr std::uint64_t kReady = 2;  // the hello of the other end is heard, so that it may write

constexpr std::size_t kWord = sizeof(std::uint64_t);
static_assert(sizeof(SlotHeader) - kWord <= kInline && kLineOnTheWay - kWord <= kInline);
static_assert(offsetof(SlotHeader, message) == 0 && offsetof(FlagLine, flag) == 0);

}  // namespace

// ---- one link

VerbsLink::VerbsLink(VerbsNetwork& network, int peer, Mirror& mirror, tcp::TcpLink& beside)
    : network_(network), peer_(peer), mirror_(mirror), beside_(beside) {
  beside_.give_notes_to([this](std::uint64_t number, tcp::Note note) { take(number, note); });
}

void VerbsLink::say_hello() {
  auto made = QueuePair::make(*network_.device_, mirror_.piece());
  if (!made.is_ok()) {
    is_broken_ = true;
    return network_.beside_->fail(network_.rank_, made.status().code(), "has no link: " + made.status().message());
  }
  pair_ = std::move(made).value();
  network_.open_.push_back(this);
  ++network_.connecting_;
  const auto hello = std::bit_cast<std::array<std::byte, sizeof(Hello)>>(pair_->hello());
  beside_.tell(kHello, hello);
}

void VerbsLink::take(std::uint64_t number, tcp::Note note) {
  if (is_broken_) return;
  const bool knows_me = pair_ != nullptr;
  if (number == kHello) {
    if (!knows_me) say_hello();
    if (is_broken_) return;
    Hello hello;
    std::memcpy(&hello, note.data(), sizeof hello);
    if (const Status connected = pair_->connect(hello); !connected.is_ok()) {
      is_broken_ = true;
      return network_.beside_->fail(peer_, connected.code(), connected.message());
    }
    beside_.tell(kReady, note);
  } else if (number == kReady && knows_me && !is_up_) {
    is_up_ = true;  // what waits is sent with what comes next: here the note is not taken apart yet
    --network_.connecting_;
  }
}

void VerbsLink::break_off(const Status& why) {
  is_broken_ = true;
  waiting_.clear();
  // The peer may have left, and what it said last may still lie here; or it is dead, and the kernel has said so.
  while (network_.beside_->receive()) {
  }
  if (!beside_.is_closed()) network_.beside_->fail(peer_, Code::aborted, why.message());
}

void VerbsLink::add(std::span<const std::byte> from, std::size_t to, bool is_stable) {
  Waiting& waiting = waiting_.emplace_back();
  const bool is_short = from.size() <= kInline;
  if (!is_stable) std::memcpy(waiting.copy.data(), from.data(), from.size());
  waiting.write = {.from = is_stable ? from.data() : waiting.copy.data(),
                   .bytes = static_cast<std::uint32_t>(from.size()),
                   .to = to,
                   .is_inline = is_short};
  network_.mark_dirty(*this);
}

void VerbsLink::add_with_word_last(std::span<const std::byte> all, std::size_t to, bool is_stable) {
  add(all.subspan(kWord), to + kWord, is_stable);
  add(all.first(kWord), to, false);
}

void VerbsLink::add_counts() {
  for (const ChannelOf channel : {ChannelOf::collectives, ChannelOf::sends}) {
    Credit& credit = credits_[static_cast<std::size_t>(channel)];
    if (!credit.is_owed()) continue;
    credit.told = credit.due;
    add(std::as_bytes(std::span(&credit.due, 1)), mirror_.count_at_peer(channel), false);
  }
}

void VerbsLink::publish(ChannelOf channel, std::uint64_t slice, std::size_t bytes) {
  if (is_over()) return network_.beside_->fail(peer_, Code::aborted, "has left");
  add_counts();
  add_with_word_last(mirror_.published(channel, slice, bytes), mirror_.slice_at_peer(channel, slice), true);
  post();
}

void VerbsLink::release(ChannelOf channel, std::uint64_t count) {
  Credit& credit = credits_[static_cast<std::size_t>(channel)];
  credit.due = count;
  if (is_over()) return;
  if (!credit.is_urgent(mirror_.slots(channel))) return network_.mark_dirty(*this);
  add_counts();
  post();
}

void VerbsLink::announce(int generation) {
  if (is_over()) return network_.beside_->fail(peer_, Code::aborted, "has left");
  add_counts();
  const auto* const line = reinterpret_cast<const std::byte*>(&mirror_.mine(generation));
  add_with_word_last({line, kLineOnTheWay}, Mirror::line_at_peer(generation), false);
  post();
}

bool VerbsLink::post() {
  if (waiting_.empty() || is_over()) return false;
  if (pair_ == nullptr) say_hello();
  if (!is_up_) return false;
  bool has_moved = false;
  while (!waiting_.empty()) {
    std::array<Write, 16> writes;
    const std::size_t count = std::min(waiting_.size(), writes.size());
    for (std::size_t i = 0; i < count; ++i) writes[i] = waiting_[i].write;
    const Result<std::size_t> posted = pair_->post(std::span(writes).first(count));
    if (!posted.is_ok()) {
      break_off(posted.status());
      return has_moved;
    }
    if (posted.value() > 0) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(posted.value()));
      has_moved = true;
      continue;
    }
    const int before = pair_->under_way();
    reap();
    if (is_broken_ || pair_->under_way() == before) break;
  }
  return has_moved;
}

void VerbsLink::reap() {
  if (pair_ == nullptr || is_broken_ || pair_->under_way() == 0) return;
  if (const Status done = pair_->reap(); !done.is_ok()) break_off(done);
}

bool VerbsLink::has_arrived() {
  if (pair_ == nullptr || !is_up_ || is_over()) return true;
  reap();
  if (is_over() || pair_->under_way() == 0) return true;
  if (pair_->is_end_signalled()) return false;
  // What is under way does not all say when it is done. So more is written, which changes nothing, until one says so.
  const std::uint64_t& told = credits_[0].told;
  add(std::as_bytes(std::span(&told, 1)), mirror_.count_at_peer(ChannelOf::collectives), false);
  post();
  return false;
}

// ---- all of them

Result<std::unique_ptr<VerbsNetwork>> VerbsNetwork::make(const NetworkPlace& place) {
  const Outlook& outlook = place.outlook;
  TUTTI_ASSIGN_OR_RETURN(const auto ports, ports_here());
  Port port = port_of_host(ports, outlook.host);
  if (!place.is_pretended) {
    TUTTI_ASSIGN_OR_RETURN(port, port_at(ports, place.interface));
  }
  std::unique_ptr<VerbsNetwork> network(new VerbsNetwork(place));
  TUTTI_ASSIGN_OR_RETURN(network->device_, Device::open(port));
  TUTTI_ASSIGN_OR_RETURN(network->beside_,
                         tcp::TcpNetwork::make(outlook, {.interface = place.interface, .key = place.key}));
  for (int rank = 0; rank < outlook.domain.shape().ranks; ++rank) {
    Mirror* const mirror = outlook.mirrors[static_cast<std::size_t>(rank)].get();
    network->links_.push_back(mirror == nullptr
                                  ? nullptr
                                  : std::make_unique<VerbsLink>(*network, rank, *mirror, network->beside_->link(rank)));
  }
  return network;
}

VerbsNetwork::~VerbsNetwork() {
  if (beside_ == nullptr) return;
  const auto end = Clock::now() + (failure().is_ok() ? std::chrono::milliseconds(kPatienceWithPeers)
                                                     : std::chrono::milliseconds(kPatienceAfterFailure));
  const auto has_all = [](VerbsLink* link) { return link->is_drained() && link->has_arrived(); };
  for (;;) {
    for (VerbsLink* const link : open_) link->post();
    beside_->send(Mood::busy);
    look();
    if (std::ranges::all_of(open_, has_all) || Clock::now() > end) break;
    std::this_thread::yield();
  }
  for (const auto& link : links_) {
    if (link != nullptr) link->beside_.give_notes_to([](std::uint64_t, tcp::Note) {});
  }
  beside_.reset();  // says goodbye, while what the peers write still has a place here
}

void VerbsNetwork::mark_dirty(VerbsLink& link) {
  if (link.is_dirty_) return;
  link.is_dirty_ = true;
  dirty_.push_back(&link);
}

bool VerbsNetwork::look() {
  for (VerbsLink* const link : open_) link->reap();
  return beside_->receive();
}

bool VerbsNetwork::receive() {
  if (connecting_ == 0 && ++looks_ % kLooksBetweenNotes != 0) return false;
  return look();
}

bool VerbsNetwork::send(Mood mood) {
  beside_->send(Mood::busy);
  if (dirty_.empty()) return false;
  if (mood == Mood::busy) idle_looks_ = 0;
  const bool tells_counts = mood == Mood::idle && ++idle_looks_ >= kIdleBeforeCounts;
  bool has_moved = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    VerbsLink& link = *dirty_[i];
    if (tells_counts && !link.is_over()) link.add_counts();
    has_moved |= link.post();
    link.is_dirty_ = !link.is_over() && (!link.waiting_.empty() || link.owes_counts());
    if (link.is_dirty_) dirty_[kept++] = &link;
  }
  dirty_.resize(kept);
  return has_moved;
}

bool VerbsNetwork::is_drained() const {
  return beside_->is_drained() && std::ranges::all_of(dirty_, [](const VerbsLink* link) { return link->is_drained(); });
}

}  // namespace tutti::verbs
