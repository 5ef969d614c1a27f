// SPDX-License-Identifier: Apache-2.0
// The machines of a job as a user names them, `a:2,b:2`, and which ranks are on which of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/floors.h"
#include "impl/transports/hosts.h"
#include "impl/types/status.h"

namespace tutti::harness::cases {

struct NamedHost {
  std::string name;  ///< as an agent takes it
  int slots = 1;     ///< ranks that it has room for

  bool operator==(const NamedHost&) const = default;
};

/// `a:2,b:2`; a name without a number has one slot. Errors: invalid_argument naming the text.
[[nodiscard]] Result<std::vector<NamedHost>> parse_hosts(std::string_view text);
/// One host per line: its name, then, where it has more than one slot, their number, which may be written `slots=2`.
/// What follows `#` is a comment. Errors: invalid_argument naming the line.
[[nodiscard]] Result<std::vector<NamedHost>> parse_hostfile(std::string_view text);
/// Back to the text of a list.
[[nodiscard]] std::string to_text(const std::vector<NamedHost>& hosts);

[[nodiscard]] int slots_of(const std::vector<NamedHost>& hosts);
/// Each host in its turn gets one more rank while it has a slot; ranks are then numbered by hosts. A host that would
/// get none is not in it. Requires: 1 <= ranks <= slots_of(hosts).
[[nodiscard]] Hosts dealt_to(const std::vector<NamedHost>& hosts, int ranks);

}  // namespace tutti::harness::cases
