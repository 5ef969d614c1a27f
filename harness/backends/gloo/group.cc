// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/group.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <gloo/allgather.h>
#include <gloo/barrier.h>
#include <gloo/transport/tcp/device.h>
#include <utility>

namespace tutti::backend_gloo {
namespace {

constexpr auto kTimeout = std::chrono::hours(24);  // whoever started the ranks watches their deadlines
constexpr std::uint32_t kOwnTag = 1;               // of what this backend needs; the calls of users have tag 0

struct Choice {
  int colour, key, rank;
};

}  // namespace

Device make_device(const std::string& address) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  return gloo::transport::tcp::CreateDevice(attributes);
}

void Mailbox::send(const std::byte* from, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(from, from + bytes);
  }
  sent_.notify_one();
}

void Mailbox::receive(std::byte* to) {
  std::unique_lock lock(mutex_);
  sent_.wait(lock, [this] { return !messages_.empty(); });
  std::ranges::copy(messages_.front(), to);
  messages_.pop_front();
}

Group::Group(Device device, const Seat& seat, const Exchange& exchange) : device_(std::move(device)), seat_(seat) {
  const auto context = std::make_shared<gloo::rendezvous::Context>(seat.rank, seat.ranks);
  context->setTimeout(kTimeout);
  ExchangedStore store(exchange);
  context->connectFullMesh(store, device_);
  context_ = context;
  lanes_.resize(1 + 2 * static_cast<std::size_t>(seat.ranks));
}

std::unique_ptr<Group> Group::split(int colour, int key) {
  Choice mine{.colour = colour, .key = key, .rank = seat_.rank};
  std::vector<Choice> members(static_cast<std::size_t>(seat_.ranks));
  gloo::AllgatherOptions options(context_);
  options.setInput(&mine, 1);
  options.setOutput(members.data(), members.size());
  options.setTag(kOwnTag);
  gloo::allgather(options);
  if (colour < 0) return nullptr;
  std::erase_if(members, [colour](const Choice& each) { return each.colour != colour; });
  std::ranges::stable_sort(members, {}, &Choice::key);
  const auto at = std::ranges::find(members, seat_.rank, &Choice::rank);
  const Seat seat{.rank = static_cast<int>(at - members.begin()), .ranks = static_cast<int>(members.size())};
  std::vector<int> ranks;
  for (const Choice& each : members) ranks.push_back(each.rank);
  return std::make_unique<Group>(device_, seat,
                                 [this, &ranks](const std::string& mine) { return exchange_among(ranks, mine); });
}

std::vector<std::string> Group::exchange_among(const std::vector<int>& members, const std::string& mine) {
  const auto swap = [&](int peer, const void* send, void* receive, std::size_t sent, std::size_t received) {
    const auto out = context_->createUnboundBuffer(const_cast<void*>(send), sent);
    const auto in = context_->createUnboundBuffer(receive, received);
    in->recv(peer, kOwnTag);
    out->send(peer, kOwnTag);
    out->waitSend();
    in->waitRecv();
  };
  std::vector<std::string> all;
  for (const int member : members) {
    if (member == seat_.rank) {
      all.push_back(mine);
      continue;
    }
    const std::uint64_t bytes = mine.size();
    std::uint64_t its_bytes = 0;
    swap(member, &bytes, &its_bytes, sizeof(bytes), sizeof(its_bytes));
    std::string& its = all.emplace_back(its_bytes, '\0');
    swap(member, mine.data(), its.data(), mine.size(), its.size());
  }
  return all;
}

void Group::meet() {
  gloo::BarrierOptions options(context_);
  options.setTag(kOwnTag);
  gloo::barrier(options);
}

Lane& Group::lane(std::size_t index) {
  if (lanes_[index] == nullptr) lanes_[index] = std::make_unique<Lane>();
  return *lanes_[index];
}

}  // namespace tutti::backend_gloo
