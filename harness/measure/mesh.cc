// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/mesh.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "harness/board/runner_sockets.h"
#include "harness/machine/clock.h"
#include "harness/measure/deadline.h"
#include "impl/tcp/meeting.h"
#include "impl/tcp/socket.h"

namespace tutti::harness::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBoardAlignment = 4096;
constexpr std::size_t kHalfPage = RunnerPage::kPayload / 2;

struct Line {
  std::uint64_t word = 0, round = 0;
  std::array<std::int64_t, 2> instants_ns{};
};

Line line_of(const SyncLine& line) {
  // The word first: it is written last, and says that the instants are there.
  Line copy{.word = line.word.load(std::memory_order_acquire), .round = line.round.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i < 2; ++i) copy.instants_ns[i] = line.instants_ns[i].load(std::memory_order_relaxed);
  return copy;
}

void put(const Line& copy, SyncLine& line) {
  for (std::size_t i = 0; i < 2; ++i) line.instants_ns[i].store(copy.instants_ns[i], std::memory_order_relaxed);
  line.round.store(copy.round, std::memory_order_release);
  line.word.store(copy.word, std::memory_order_release);
}

}  // namespace

/// What goes before a payload. Both ends are of one build.
struct Mesh::Message {
  enum class Kind : std::uint32_t { page = 1, sync = 2, probe = 3, question = 4, answer = 5 };
  Kind kind = Kind::page;
  std::uint32_t bytes = 0;   ///< of the payload
  std::uint64_t number = 0;  ///< of an exchange; an answer's reading
};

Mesh::Mesh(int runner, std::vector<int> machines, std::chrono::nanoseconds timeout)
    : runner_(runner), machines_(std::move(machines)), timeout_(timeout) {
  const std::size_t bytes =
      (Board::bytes(static_cast<int>(machines_.size())) + kBoardAlignment - 1) / kBoardAlignment * kBoardAlignment;
  mirror_.reset(std::aligned_alloc(kBoardAlignment, bytes));
  TUTTI_ASSERT(mirror_ != nullptr, "no {} bytes for a board", bytes);
  std::memset(mirror_.get(), 0, bytes);
}

Result<std::unique_ptr<Mesh>> Mesh::join(const MeshPlace& place) {
  std::unique_ptr<Mesh> mesh(new Mesh(place.runner, place.machines, place.timeout));
  TUTTI_ASSIGN_OR_RETURN(const tcp::Listener listener, tcp::listen_on(place.interface));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                         tcp::meet({.key = place.key,
                                    .role = tcp::Role::meeting_of_exchange,
                                    .process = place.runner,
                                    .processes = static_cast<int>(place.machines.size()),
                                    .text = listener.address,
                                    .address = place.address,
                                    .listener = place.listener,
                                    .timeout = place.timeout}));
  std::vector<int> far;
  for (int runner = 0; runner < static_cast<int>(place.machines.size()); ++runner) {
    if (mesh->is_far(runner)) far.push_back(runner);
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<RunnerSocket> sockets, connect_to_runners({.runner = place.runner,
                                                                                .others = far,
                                                                                .addresses = addresses,
                                                                                .key = place.key,
                                                                                .listener = listener.socket.get(),
                                                                                .timeout = place.timeout,
                                                                                .role = tcp::Role::exchange,
                                                                                .what = "exchanges"}));
  for (RunnerSocket& one : sockets)
    mesh->peers_.push_back({.runner = one.runner, .stream = {std::move(one.socket), one.session}});
  mesh->events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!mesh->events_.is_open()) return error(Code::io, "cannot make an epoll: {}", std::strerror(errno));
  for (std::size_t i = 0; i < mesh->peers_.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (epoll_ctl(mesh->events_.get(), EPOLL_CTL_ADD, mesh->peers_[i].stream.descriptor(), &event) != 0)
      return error(Code::io, "cannot wait for the connections of the exchange: {}", std::strerror(errno));
  }
  return mesh;
}

void Mesh::send(Peer& peer, const Message& message, const void* payload) {
  if (peer.is_gone) return;
  const std::span text(static_cast<const std::byte*>(payload), message.bytes);
  peer.stream.send({tcp::bytes_of(message), text});
  const auto end = Clock::now() + timeout_;
  while (!peer.stream.has_sent_all()) {
    std::array<pollfd, 2> ends{pollfd{.fd = peer.stream.descriptor(), .events = POLLOUT, .revents = 0},
                               pollfd{.fd = events_.get(), .events = POLLIN, .revents = 0}};
    ::poll(ends.data(), ends.size(), 10);
    // Takes what all peers have sent, for runners that send in a circle would wait for each other. And a full receive
    // buffer can make the kernel drop the acknowledgements of what was sent.
    take_all();
    peer.stream.flush();
    if ((ends[0].revents & (POLLERR | POLLHUP)) != 0 || Clock::now() > end) peer.is_gone = true;
    if (peer.is_gone) return;  // what is waited for then does not come
  }
}

void Mesh::lose(Peer& peer) {
  peer.is_gone = true;
  if (peer.stream.is_open()) epoll_ctl(events_.get(), EPOLL_CTL_DEL, peer.stream.descriptor(), nullptr);
}

void Mesh::tell(const Board& board, int runner, Part part) {
  Message message;
  Line line;
  const void* payload = &line;
  switch (part) {
    case Part::page: {
      const RunnerPage& page = board.page(runner);
      message.number = page.sequence.load(std::memory_order_relaxed);
      message.bytes = kHalfPage;
      payload = page.payload + message.number % 2 * kHalfPage;
      break;
    }
    case Part::sync:
    case Part::probe:
      message.kind = part == Part::sync ? Message::Kind::sync : Message::Kind::probe;
      message.bytes = sizeof line;
      line = line_of(part == Part::sync ? board.sync(runner) : board.probe(runner));
      break;
  }
  for (Peer& peer : peers_) send(peer, message, payload);
}

void Mesh::look(const Board& /*board*/) { take_all(); }

void Mesh::take_all() {
  constexpr int kMost = 16;
  std::array<epoll_event, kMost> ready;
  const int count = epoll_wait(events_.get(), ready.data(), kMost, 0);
  for (int i = 0; i < count; ++i) take(peers_[ready[static_cast<std::size_t>(i)].data.u64]);
}

void Mesh::take(Peer& peer) {
  peer.stream.receive();
  for (;;) {
    const auto next = peer.stream.next();
    if (!next.is_ok()) {
      if (failure_.is_ok()) failure_ = error(next.status().code(), "rank {}: {}", peer.runner, next.status().message());
      return lose(peer);
    }
    if (!next.value()) break;
    const std::string& text = *next.value();
    Message message;
    if (text.size() < sizeof message) return lose(peer);  // no message of ours
    std::memcpy(&message, text.data(), sizeof message);
    if (text.size() - sizeof message != message.bytes) return lose(peer);
    apply(peer, message, reinterpret_cast<const std::byte*>(text.data()) + sizeof message);
  }
  if (!peer.stream.is_open()) peer.is_gone = true;
}

void Mesh::apply(Peer& peer, const Message& message, const std::byte* payload) {
  const Board board(mirror_.get(), static_cast<int>(machines_.size()));
  switch (message.kind) {
    case Message::Kind::page: {
      if (message.bytes != kHalfPage) return;
      RunnerPage& page = board.page(peer.runner);
      std::memcpy(page.payload + message.number % 2 * kHalfPage, payload, kHalfPage);
      page.sequence.store(message.number, std::memory_order_release);
      return;
    }
    case Message::Kind::sync:
    case Message::Kind::probe: {
      Line line;
      if (message.bytes != sizeof line) return;
      std::memcpy(&line, payload, sizeof line);
      put(line, message.kind == Message::Kind::sync ? board.sync(peer.runner) : board.probe(peer.runner));
      return;
    }
    case Message::Kind::question: {
      const std::int64_t now = clock_ == nullptr ? monotonic_ns() : clock_->now();
      return send(peer, {.kind = Message::Kind::answer, .number = static_cast<std::uint64_t>(now)}, nullptr);
    }
    case Message::Kind::answer:
      answer_ns_ = static_cast<std::int64_t>(message.number);
      has_answer_ = true;
      return;
  }
}

Result<ClockTrip> Mesh::ask_clock(int runner, const RunnerClock& mine, const Board& board) {
  const auto peer = std::ranges::find(peers_, runner, &Peer::runner);
  TUTTI_ASSERT(peer != peers_.end(), "runner {} asks runner {}, of its own machine, for the clock", runner_, runner);
  has_answer_ = false;
  Deadline deadline(board, monotonic_ns() + timeout_.count());
  ClockTrip trip{.asked_ns = mine.now()};
  send(*peer, {.kind = Message::Kind::question}, nullptr);
  for (int turn = 1;; ++turn) {
    look(board);
    if (has_answer_) break;
    if (turn % 64 != 0) continue;
    sched_yield();
    TUTTI_RETURN_IF_ERROR(failure_);
    if (is_aborted(board)) return error(Code::aborted, "the job was given up");
    if (deadline.has_passed(monotonic_ns()))
      return error(Code::timeout, "rank {} does not say what its clock is", runner);
  }
  trip.heard_ns = mine.now();
  trip.there_ns = answer_ns_;
  return trip;
}

}  // namespace tutti::harness::measure
