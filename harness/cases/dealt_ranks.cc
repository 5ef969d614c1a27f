// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/dealt_ranks.h"

#include <utility>

#include "impl/types/status.h"

namespace tutti::harness::cases {

Hosts dealt_to(const std::vector<NamedHost>& hosts, int ranks) {
  TUTTI_ASSERT(ranks >= 1 && ranks <= slots_of(hosts), "{} ranks on {}", ranks, to_text(hosts));
  std::vector<int> shares(hosts.size());
  for (int left = ranks; left > 0;) {
    for (std::size_t host = 0; host < hosts.size() && left > 0; ++host) {
      if (shares[host] == hosts[host].slots) continue;
      ++shares[host];
      --left;
    }
  }
  std::vector<int> host_of;
  int number = 0;
  for (const int share : shares) {
    if (share == 0) continue;  // only hosts at the end: each has a slot
    host_of.insert(host_of.end(), static_cast<std::size_t>(share), number++);
  }
  return Hosts(std::move(host_of));
}

}  // namespace tutti::harness::cases
