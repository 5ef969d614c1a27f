// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/group_domain.h"

namespace tutti {

DomainShape group_shape(const DomainShape& of, int ranks) {
  DomainShape shape = of;
  shape.ranks = ranks;
  shape.heap_bytes = 0;
  shape.ranks_on.clear();
  return shape;
}

GroupDomain::GroupDomain(Domain& world, std::vector<int> world_ranks, const DomainShape& shape,
                         std::shared_ptr<GroupMemory> memory)
    : Domain(shape, world.transport(), memory->base()),
      world_(world),
      world_ranks_(std::move(world_ranks)),
      memory_(std::move(memory)) {}

std::string GroupDomain::name_of(int rank) const {
  return fmt::format("rank {} of the group (rank {} of the world)", rank, world_rank(rank));
}

}  // namespace tutti
