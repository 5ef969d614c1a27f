// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/verbs/devices.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <infiniband/verbs.h>
#include <memory>
#include <tuple>

#include <fmt/ranges.h>

#include "impl/tcp/interface.h"

namespace tutti::verbs {
namespace {

constexpr std::size_t kMostGids = 256;  // that are looked at, of one device
constexpr std::array<std::uint8_t, 12> kBeforeIPv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_ipv4(const Gid& gid) { return std::ranges::equal(std::span(gid).first(kBeforeIPv4.size()), kBeforeIPv4); }

/// The first address of a network interface that the device has.
std::string address_of_device(const std::string& device) {
  std::error_code ignored;
  const std::filesystem::path interfaces = std::filesystem::path("/sys/class/infiniband") / device / "device" / "net";
  for (auto entry = std::filesystem::directory_iterator(interfaces, ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const auto address = tcp::address_of_interface(entry->path().filename().string());
    if (address.is_ok()) return address.value();
  }
  return "";
}

/// By its GIDs: those of RoCE v2 on Ethernet, the first one else.
void add_ports(ibv_context& context, std::vector<Port>& ports) {
  const std::string name = context.device->name;
  std::vector<ibv_gid_entry> table(kMostGids);
  const ssize_t found = ibv_query_gid_table(&context, table.data(), table.size(), 0);
  if (found <= 0) return;
  table.resize(static_cast<std::size_t>(found));
  for (const ibv_gid_entry& entry : table) {
    ibv_port_attr attributes = {};
    const auto number = static_cast<std::uint8_t>(entry.port_num);
    if (ibv_query_port(&context, number, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) continue;
    Port port{.device = name,
              .number = number,
              .gid_index = static_cast<std::uint8_t>(entry.gid_index),
              .is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET};
    if (port.is_ethernet ? entry.gid_type != IBV_GID_TYPE_ROCE_V2 : entry.gid_index != 0) continue;
    std::memcpy(port.gid.data(), entry.gid.raw, port.gid.size());
    const std::string of_interface = port.is_ethernet ? "" : address_of_device(name);
    port.address = of_interface.empty() ? to_text(port.gid) : of_interface;
    ports.push_back(std::move(port));
  }
}

Status no_device(int failure) {
  const std::filesystem::path folder = "/sys/class/infiniband";
  std::error_code ignored;
  const auto entry = std::filesystem::directory_iterator(folder, ignored);
  if (ignored || entry == std::filesystem::directory_iterator()) {
    return error(Code::unavailable, "no RDMA device: {} is empty", folder.string());
  }
  return error(Code::unavailable, "no RDMA device: {} has {}, but libibverbs shows none{}", folder.string(),
               entry->path().filename().string(), failure == 0 ? "" : fmt::format(": {}", std::strerror(failure)));
}

/// Nobody is told such an address, and nothing routes to it.
bool is_link_local(const Port& port) { return port.is_ethernet && port.gid[0] == 0xfe && (port.gid[1] & 0xc0) == 0x80; }

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

}  // namespace

std::string to_text(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_short = is_ipv4(gid);
  inet_ntop(is_short ? AF_INET : AF_INET6, gid.data() + (is_short ? kBeforeIPv4.size() : 0), text.data(),
            static_cast<socklen_t>(text.size()));
  return text.data();
}

std::string to_text(const Port& port) {
  return fmt::format("{} port {} ({})", port.device, static_cast<int>(port.number), port.address);
}

Result<Gid> gid_of(const std::string& address) {
  Gid gid{};
  if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  std::ranges::copy(kBeforeIPv4, gid.begin());
  if (inet_pton(AF_INET, address.c_str(), gid.data() + kBeforeIPv4.size()) == 1) return gid;
  return error(Code::invalid_argument, "'{}' is no address: one is 192.0.2.7 or 2001:db8::7", address);
}

Result<std::vector<Port>> ports_here() {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  if (list == nullptr || count == 0) return no_device(list == nullptr ? errno : 0);
  std::vector<Port> ports;
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(list.get()[i]->name);
    const std::unique_ptr<ibv_context, decltype(&ibv_close_device)> context(ibv_open_device(list.get()[i]),
                                                                            &ibv_close_device);
    if (context == nullptr) {
      names.back() += fmt::format(": {}", std::strerror(errno));
    } else {
      add_ports(*context, ports);
    }
  }
  if (ports.empty()) {
    return error(Code::unavailable, "no RDMA device has a port that is up with an address: {}", fmt::join(names, ", "));
  }
  return in_order(std::move(ports));
}

std::vector<Port> in_order(std::vector<Port> ports) {
  std::ranges::stable_sort(ports, {}, [](const Port& port) {
    return std::tuple(port.device, port.number, is_link_local(port), !is_ipv4(port.gid));
  });
  std::vector<Port> kept;
  for (const Port& port : ports) {
    const bool is_first = kept.empty() || kept.back().device != port.device || kept.back().number != port.number;
    if (is_first || !is_link_local(port)) kept.push_back(port);
  }
  return kept;
}

Result<Port> port_at(std::span<const Port> ports, const std::string& address) {
  TUTTI_ASSIGN_OR_RETURN(const Gid gid, gid_of(address));
  const auto found = std::ranges::find_if(
      ports, [&](const Port& port) { return port.is_ethernet ? port.gid == gid : port.address == address; });
  if (found != ports.end()) return *found;
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(to_text(port));
  return error(Code::unavailable, "no RDMA device here has the address {}, so --interface is to name another one: {}",
               address, fmt::join(names, ", "));
}

const Port& port_of_host(std::span<const Port> ports, int host) {
  std::vector<const Port*> firsts;
  for (const Port& port : ports) {
    if (firsts.empty() || firsts.back()->device != port.device) firsts.push_back(&port);
  }
  TUTTI_ASSERT(!firsts.empty(), "no port for host {}", host);
  return *firsts[static_cast<std::size_t>(host) % firsts.size()];
}

}  // namespace tutti::verbs
