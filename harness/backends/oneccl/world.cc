// SPDX-License-Identifier: Apache-2.0
#include "harness/backends/oneccl/world.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace tutti::backend_oneccl {
namespace {

using Address = ccl::kvs::address_type;

/// Every rank's value. Throws.
template <class T>
std::vector<T> exchange(const TuttiBackendGroup& world, const TuttiBackendJoin& join, const T& mine) {
  static_assert(sizeof(T) <= TUTTI_EXCHANGE_BYTES);
  std::vector<T> all(static_cast<std::size_t>(world.ranks));
  if (join.exchange(join.context, &mine, all.data(), sizeof(T)) != 0) {
    throw std::runtime_error("the ranks' exchange failed");
  }
  return all;
}

/// The folder of oneCCL's library, where libfabric's providers lie too.
std::string library_folder() {
  Dl_info about{};
  using Version = ccl::library_version (*)();
  const Version version = &ccl::get_library_version;
  void* address = nullptr;
  std::memcpy(&address, &version, sizeof(address));
  if (::dladdr(address, &about) == 0 || about.dli_fname == nullptr) return {};
  const std::string path = about.dli_fname;
  return path.substr(0, path.rfind('/'));
}

/// The interface that has the address. Throws.
std::string interface_of(const std::string& address) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw std::runtime_error("the interfaces of this host cannot be listed");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    const int failed = ::getnameinfo(one->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    if (failed == 0 && address == text.data()) return one->ifa_name;
  }
  throw std::runtime_error("no interface of this host has the address " + address);
}

}  // namespace

void prepare_environment(const TuttiBackendGroup& world, const TuttiBackendJoin& join) {
  const std::vector<std::int32_t> hosts = exchange(world, join, join.host);
  const auto ranks_here = std::ranges::count(hosts, join.host);
  const std::string interface = interface_of(join.address != nullptr ? join.address : "127.0.0.1");
  const auto unless_set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 0); };
  unless_set("CCL_ATL_TRANSPORT", "ofi");
  unless_set("CCL_KVS_IFACE", interface);
  unless_set("CCL_LOG_LEVEL", "error");
  unless_set("CCL_ZE_ENABLE", "0");
  unless_set("FI_PROVIDER", "tcp");
  unless_set("FI_PROVIDER_PATH", library_folder());
  unless_set("FI_TCP_IFACE", interface);
  // Its own threads spin. Without a core for each, the ranks move their messages themselves.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool is_known = ::sched_getaffinity(0, sizeof(cores), &cores) == 0;
  if (is_known && CPU_COUNT(&cores) < 2 * ranks_here) unless_set("CCL_WORKER_OFFLOAD", "0");
  // Where ranks are is known here; nothing else has started them for oneCCL.
  ::setenv("CCL_PROCESS_LAUNCHER", "none", 1);
  ::setenv("CCL_LOCAL_SIZE", std::to_string(ranks_here).c_str(), 1);
  ::setenv("CCL_LOCAL_RANK", std::to_string(join.rank_on_host).c_str(), 1);
}

std::unique_ptr<Group> connect(const TuttiBackendGroup& world, const TuttiBackendJoin& join) {
  ccl::init();
  ccl::shared_ptr_class<ccl::kvs> store;
  if (world.rank == 0) store = ccl::create_main_kvs();
  const Address own = store ? store->get_address() : Address();
  const Address first = exchange(world, join, own).front();
  if (!store) store = ccl::create_kvs(first);
  return std::make_unique<Group>(
      Group{.communicator = ccl::create_communicator(world.ranks, world.rank, store), .store = store});
}

std::unique_ptr<Group> split(Group& whole, std::int32_t colour, std::int32_t key) {
  const auto all = static_cast<std::size_t>(whole.ranks());
  struct Wish {
    std::int32_t colour, key;
  };
  const auto tell = [&](const void* mine, void* everybody, std::size_t bytes) {
    ccl::allgather(mine, everybody, bytes, ccl::datatype::uint8, whole.communicator).wait();
  };
  const Wish wish{colour, key};
  std::vector<Wish> wishes(all);
  tell(&wish, wishes.data(), sizeof(wish));
  std::vector<std::size_t> members;
  for (std::size_t rank = 0; rank < all; ++rank) {
    if (colour >= 0 && wishes[rank].colour == colour) members.push_back(rank);
  }
  // oneCCL's own split leaves ranks in their order, and takes no colour below 0.
  const auto of_group = [&](std::size_t rank) { return std::pair(wishes[rank].colour, wishes[rank].key); };
  bool are_in_order = true;
  for (std::size_t rank = 1; rank < all; ++rank) {
    for (std::size_t before = 0; before < rank; ++before) {
      const bool is_one_group = wishes[rank].colour >= 0 && wishes[rank].colour == wishes[before].colour;
      are_in_order &= !is_one_group || of_group(before) <= of_group(rank);
    }
  }
  if (are_in_order) {
    const int own_colour = colour < 0 ? whole.ranks() + whole.rank() : colour;
    auto made = std::make_unique<Group>(Group{.communicator = whole.communicator.split(own_colour, 0)});
    return colour < 0 ? nullptr : std::move(made);
  }
  std::ranges::stable_sort(members, {}, [&](std::size_t rank) { return wishes[rank].key; });
  const auto own = static_cast<std::size_t>(whole.rank());
  ccl::shared_ptr_class<ccl::kvs> store;
  if (!members.empty() && members.front() == own) store = ccl::create_main_kvs();
  const Address address = store ? store->get_address() : Address();
  std::vector<Address> addresses(all);
  tell(&address, addresses.data(), sizeof(address));
  if (members.empty()) return nullptr;
  if (!store) store = ccl::create_kvs(addresses[members.front()]);
  const auto place = static_cast<int>(std::ranges::find(members, own) - members.begin());
  return std::make_unique<Group>(
      Group{.communicator = ccl::create_communicator(static_cast<int>(members.size()), place, store), .store = store});
}

}  // namespace tutti::backend_oneccl
