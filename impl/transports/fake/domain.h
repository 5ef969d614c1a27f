// SPDX-License-Identifier: Apache-2.0
// Ranks of one process on pretended hosts. Links between them deliver by a seed: any delay, in order on each link, no
// order between links. A slice is read from its slot as late as can be, and arrives in two parts. So what relies on
// more than a link promises goes wrong here, and the seed makes it go wrong again.
#pragma once

#include <cstdint>
#include <memory>

#include "impl/transports/domain.h"
#include "impl/transports/transport.h"

namespace tutti::fake {

/// What goes wrong on every link, for tests; the numbers are those of a link's frames of that kind, from 0.
struct Mishap {
  int lost_slice = -1;
  int lost_line = -1;
  int lost_count = -1;
  bool goes = false;  ///< links say from the start that the other rank went
};

struct Weather {
  std::uint64_t seed = 1;
  Mishap mishap = {};
};

[[nodiscard]] const Transport& transport();
/// Errors: resource.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, const Weather& weather);
/// With hosts that are not in blocks: those of the shape do not count.
[[nodiscard]] Result<std::unique_ptr<Domain>> open_domain(const DomainShape& shape, const tutti::Hosts& hosts,
                                                          const Weather& weather);

}  // namespace tutti::fake
