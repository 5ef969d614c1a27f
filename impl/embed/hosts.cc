// SPDX-License-Identifier: Apache-2.0
#include "impl/embed/hosts.h"

#include "impl/tcp/interface.h"
#include "impl/tcp/secret.h"
#include "impl/tcp/socket.h"
#include "impl/transports/tcp/domain.h"

namespace tutti::embed {
namespace {

/// "eth0 (192.0.2.7), eth1 (198.51.100.7)"
std::string list_of(const std::vector<tcp::OwnAddress>& addresses) {
  std::string text;
  for (const auto& each : addresses) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each.interface, each.address);
  }
  return text;
}

class OverTcp final : public BetweenHosts {
 public:
  Result<Reception> receive(const std::string& interface) const override {
    TUTTI_ASSIGN_OR_RETURN(std::string address, own_address(interface));
    TUTTI_ASSIGN_OR_RETURN(tcp::Listener listener, tcp::listen_on(address));
    TUTTI_ASSIGN_OR_RETURN(const tcp::Secret key, tcp::draw_secret());
    return Reception{.interface = std::move(address),
                     .address = std::move(listener.address),
                     .key = tcp::to_text(key),
                     .listener = std::move(listener.socket)};
  }

  Result<std::string> address_here(const std::string& interface, const std::string& address_of_rank_0) const override {
    if (!interface.empty()) return tcp::address_of_interface(interface);
    std::string host = address_of_rank_0.substr(0, address_of_rank_0.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return tcp::address_towards(host);
  }

  const Transport& transport() const override { return tcp::transport(); }

 private:
  static Result<std::string> own_address(const std::string& interface) {
    if (!interface.empty()) return tcp::address_of_interface(interface);
    const auto addresses = tcp::addresses_for_others();
    if (addresses.size() == 1) return addresses.front().address;
    if (addresses.empty()) {
      return error(Code::unavailable, "ranks are on several hosts, and this one has no address but its loopback");
    }
    return error(Code::unavailable,
                 "ranks are on several hosts, and others may reach this one at several addresses: {}; name the "
                 "interface to take (WorldOptions::interface; with PyTorch TUTTI_INTERFACE)",
                 list_of(addresses));
  }
};

}  // namespace

const BetweenHosts& over_tcp() {
  static const OverTcp between;
  return between;
}

}  // namespace tutti::embed
