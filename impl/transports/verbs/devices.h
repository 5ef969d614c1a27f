// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of this machine, and which of them a rank uses: the one that has the address at which the rank is
// reached. On RoCE that address stands in the device's table of GIDs. On InfiniBand it is that of a network interface
// which the device has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "impl/types/status.h"

namespace tutti::verbs {

/// As it travels in packets; an address of IPv4 is ::ffff:a.b.c.d.
using Gid = std::array<std::uint8_t, 16>;

/// One address that ranks can be reached at over a device.
struct Port {
  std::string device;       ///< "mlx5_0", "rxe0"
  std::uint8_t number = 1;  ///< of the device's ports
  std::uint8_t gid_index = 0;
  Gid gid{};
  std::string address;      ///< "10.0.0.1"; that of the GID where the device has no other
  bool is_ethernet = true;  ///< RoCE: the GID is what packets are addressed with
  bool operator==(const Port&) const = default;
};
/// "rxe0 port 1 (10.0.0.1)".
[[nodiscard]] std::string to_text(const Port& port);

/// All that are up, in order. On Ethernet only those of RoCE v2. Errors: unavailable where there is none, with why.
[[nodiscard]] Result<std::vector<Port>> ports_here();
/// By device, the addresses of IPv4 first, without link-local ones where the device's port has another.
[[nodiscard]] std::vector<Port> in_order(std::vector<Port> ports);

/// The one that has the address. Errors: unavailable, with what there is.
[[nodiscard]] Result<Port> port_at(std::span<const Port> ports, const std::string& address);
/// That of a host that is pretended: each host has a device of its own, and they take turns where there are more hosts.
/// Requires: there is one.
[[nodiscard]] const Port& port_of_host(std::span<const Port> ports, int host);
/// The GID of an address: "10.0.0.1" or "2001:db8::1". Errors: invalid_argument.
[[nodiscard]] Result<Gid> gid_of(const std::string& address);
/// "10.0.0.1", "fe80::1".
[[nodiscard]] std::string to_text(const Gid& gid);

}  // namespace tutti::verbs
