// SPDX-License-Identifier: Apache-2.0
// Worlds whose ranks are on several hosts. The ranks of one host share memory, those of two hosts have connections over
// TCP. Who may connect is who knows the world's key, which rank 0 draws and says over the exchange. So whoever can read
// the exchange can join.
#pragma once

#include <string>

#include "impl/transports/transport.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"
#include "impl/types/visibility.h"

namespace tutti::embed {

/// What World::join needs of it, apart from it: so that a library for one host lacks it.
class BetweenHosts {
 public:
  /// Where rank 0 awaits the others.
  struct Reception {
    std::string interface;  ///< its address without the port
    std::string address;
    std::string key;
    Descriptor listener;
  };
  virtual ~BetweenHosts() = default;
  /// `interface`: see WorldOptions. Errors: invalid_argument, unavailable (which address others reach is not clear),
  /// io.
  [[nodiscard]] virtual Result<Reception> receive(const std::string& interface) const = 0;
  /// The address at which the others reach this host.
  [[nodiscard]] virtual Result<std::string> address_here(const std::string& interface,
                                                         const std::string& address_of_rank_0) const = 0;
  [[nodiscard]] virtual const Transport& transport() const = 0;
};

[[nodiscard]] TUTTI_API const BetweenHosts& over_tcp();

}  // namespace tutti::embed
