// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/gloo/group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <gloo/allgather.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <utility>

namespace tutti::backend_gloo {
namespace {

constexpr auto kTimeout = std::chrono::hours(24);  // whoever started the ranks watches their deadlines
constexpr std::uint32_t kOwnTag = 1;               // of what this backend needs; the calls of users have tag 0

gloo::transport::tcp::attr loopback() {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  return attributes;
}

struct Choice {
  int colour, key, rank;
};

}  // namespace

Network::Network(const std::string& directory)
    : device(gloo::transport::tcp::CreateDevice(loopback())), store(directory) {}

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

Group::Group(std::shared_ptr<Network> network, const Seat& seat, std::string prefix)
    : network_(std::move(network)), seat_(seat), prefix_(std::move(prefix)) {
  const auto context = std::make_shared<gloo::rendezvous::Context>(seat.rank, seat.ranks);
  context->setTimeout(kTimeout);
  gloo::rendezvous::PrefixStore store(prefix_, network_->store);
  context->connectFullMesh(store, network_->device);
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
  ++splits_;
  if (colour < 0) return nullptr;
  std::erase_if(members, [colour](const Choice& each) { return each.colour != colour; });
  std::ranges::stable_sort(members, {}, &Choice::key);
  const auto at = std::ranges::find(members, seat_.rank, &Choice::rank);
  return std::make_unique<Group>(
      network_, Seat{.rank = static_cast<int>(at - members.begin()), .ranks = static_cast<int>(members.size())},
      prefix_ + "." + std::to_string(splits_) + "-" + std::to_string(colour));
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
