// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/launch/connections.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

using harness::launch::Connections;

constexpr int kRanks = 3;
constexpr int kFirst = 2;
constexpr const char* kArguments = "tutti run all_reduce";

/// Checks what the launcher makes of a peer: a hello comes first and only once, from a rank that is expected.
class Checks : public Connections::Events {
 public:
  void on_hello(int rank, pid_t pid) override {
    TUTTI_ASSERT(pid == ::getpid(), "pid {}", pid);
    TUTTI_ASSERT(rank >= kFirst && rank < kFirst + kRanks, "a hello of rank {}", rank);
    TUTTI_ASSERT(greeted_.insert(rank).second, "a second hello of rank {}", rank);
  }
  void on_frame(int rank, const Frame& frame) override {
    TUTTI_ASSERT(greeted_.contains(rank), "a frame of rank {}, which has said no hello", rank);
    TUTTI_ASSERT(frame.type.size() <= kMaxTypeBytes, "a type of {} bytes", frame.type.size());
  }
  void on_closed(int rank) override { TUTTI_ASSERT(rank == -1 || greeted_.contains(rank), "rank {} left", rank); }
  void on_garbage(int rank, pid_t, const std::string& what) override {
    TUTTI_ASSERT(rank == -1 || greeted_.contains(rank), "rank {} says what it cannot", rank);
    check_message(Status(Code::io, what));
  }
  void on_unfit(const Status& why) override { check_message(why); }

 private:
  std::set<int> greeted_;
};

}  // namespace

void ranks(std::string_view input) {
  const std::string name = fmt::format("tutti-fuzz-{}", ::getpid());
  Connections connections;
  const auto welcome = [](int rank) { return Frame{"welcome", fmt::format("{}", rank)}; };
  auto listener = harness::launch::control_listener(-1, name, kRanks);
  TUTTI_ASSERT(listener.is_ok(), "{}", listener.status().message());
  connections.serve(std::move(listener).value(), {.ranks = kRanks, .first = kFirst, .arguments = kArguments}, welcome,
                    {});
  Checks checks;
  constexpr char kNextPeer = '\xff';
  for (std::size_t at = 0; at <= input.size();) {
    const std::size_t end = std::min(input.find(kNextPeer, at), input.size());
    auto peer = connect_to(name, std::chrono::seconds(1));
    TUTTI_ASSERT(peer.is_ok(), "{}", peer.status().message());
    const std::string_view said = input.substr(at, end - at);
    static_cast<void>(::send(peer.value().get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    connections.service(checks);
    peer.value().close();
    connections.service(checks);
    at = end + 1;
  }
}

}  // namespace tutti::fuzz
