// SPDX-License-Identifier: Apache-2.0
// TCP sockets that never block, for IPv4 and IPv6.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <sys/uio.h>

#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::tcp {

struct Listener {
  Descriptor socket;
  std::string address;  ///< "127.0.0.1:40123", "[::1]:40123"
};

/// At the address of one interface, "127.0.0.1" or "::1", and a port; 0: one that is free. Errors: io,
/// invalid_argument; unavailable where the port is taken.
[[nodiscard]] Result<Listener> listen_on(std::string_view interface, int port = 0);
/// "127.0.0.1:40123", "[::1]:40123".
[[nodiscard]] std::string with_port(std::string_view interface, int port);
/// The next one that has come; not open where there is none.
[[nodiscard]] Descriptor accept_from(int listener);

/// On its way: connected, or refused, when it can be written. Errors: io, see may_pass; unavailable where another try
/// is of no use; resource, invalid_argument.
[[nodiscard]] Result<Descriptor> connect_to(std::string_view address);
/// The address of the other end, with its port; "the other end" where that is not known.
[[nodiscard]] std::string peer_of(int socket);
/// How that ended; 0: it is connected.
[[nodiscard]] int error_of(int socket);
/// Whether another try may have another end: nobody listens yet, or the other end has not answered. A network that has
/// no route, an address that this host has not, or what a sandbox forbids, stays as it is.
[[nodiscard]] bool may_pass(int error_number);

/// What a socket took or gave: so many bytes, nothing now, or its end.
struct Moved {
  std::size_t bytes = 0;
  bool has_ended = false;
  int error = 0;  ///< with has_ended: why; 0: the peer has closed it
};
[[nodiscard]] Moved read_some(int socket, std::span<const iovec> parts);
[[nodiscard]] Moved write_some(int socket, std::span<const iovec> parts);

}  // namespace tutti::tcp
