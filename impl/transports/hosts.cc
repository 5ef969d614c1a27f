// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/hosts.h"

#include <algorithm>

#include "impl/types/status.h"

namespace tutti {

Hosts::Hosts(std::vector<int> host_of) : host_of_(std::move(host_of)) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const int host = this->host_of(rank);
    TUTTI_ASSERT(host >= 0 && host < ranks(), "rank {} is on host {} of at most {}", rank, host, ranks());
    if (host >= count()) ranks_on_.resize(static_cast<std::size_t>(host) + 1);
    std::vector<int>& there = ranks_on_[static_cast<std::size_t>(host)];
    place_of_.push_back(static_cast<int>(there.size()));
    there.push_back(rank);
  }
}

Hosts Hosts::in_blocks(int ranks, int hosts) {
  TUTTI_ASSERT(hosts >= 1 && hosts <= ranks, "{} hosts of {} ranks", hosts, ranks);
  std::vector<int> host_of;
  for (int host = 0; host < hosts; ++host) {
    const int share = ranks / hosts + (host < ranks % hosts ? 1 : 0);
    host_of.insert(host_of.end(), static_cast<std::size_t>(share), host);
  }
  return Hosts(std::move(host_of));
}

int Hosts::ranks_per_host() const {
  if (count() == 1) return 0;
  if (ranks() % count() != 0) return 1;
  const int each = ranks() / count();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (host_of(rank) != rank / each) return 1;
  }
  return each;
}

int Hosts::most_ranks() const {
  std::size_t most = 0;
  for (const std::vector<int>& ranks : ranks_on_) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

}  // namespace tutti
