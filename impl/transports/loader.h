// SPDX-License-Identifier: Apache-2.0
// Transports that are shared objects: libtutti_transport_NAME.so in the folders that the caller names. Such an object
// exports one C function, `const tutti::Transport* tutti_transport()`, which returns its row. It is built from the same
// headers as the program (build.h); one that is built for another program is refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/transports/transport.h"
#include "impl/types/status.h"

namespace tutti {

/// A transport that is there or, where `row` is not ok, why it cannot be used: unavailable.
struct ListedTransport {
  std::string name;
  std::string path = {};  ///< empty: built in
  Result<const Transport*> row;
};

/// Those of this build, then those in the folders, each loaded, by name. A name that is in two folders is that of the
/// first.
[[nodiscard]] std::vector<ListedTransport> list_transports(std::span<const std::string> folders);

/// Of this build or, where it has none of that name, of the first folder that has one. It stays loaded until the
/// process ends. Errors: invalid_argument naming the nearest right name; unavailable where it cannot be loaded or was
/// built for another program.
[[nodiscard]] Result<const Transport*> find_transport(std::string_view name, std::span<const std::string> folders);

}  // namespace tutti
