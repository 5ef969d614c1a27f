// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/transport.h"

#include <algorithm>
#include <array>

#include "impl/transports/cuda/domain.h"
#include "impl/transports/fake/domain.h"
#include "impl/transports/local/domain.h"
#include "impl/transports/shm/domain.h"
#include "impl/transports/tcp/domain.h"

namespace tutti {

std::span<const Transport* const> built_in_transports() {
  static const std::array kTable{&local::transport(), &shm::transport(), &tcp::transport(), &fake::transport(),
                                 &cuda::transport()};
  return kTable;
}

const Transport& best_transport(RanksIn where) {
  const auto serves = [where](const Transport* transport) { return transport->serves_ranks(where); };
  const auto table = built_in_transports();
  const auto found = std::ranges::find_if(table, serves);
  TUTTI_ASSERT(found != table.end(), "no transport serves ranks of kind {}", static_cast<int>(where));
  return **found;
}

}  // namespace tutti
