// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/hosts_domain.h"

namespace tutti {
namespace {

Status nobodys_group() { return error(Code::unavailable, "no group of a world that is seen by none of its ranks"); }

/// Numbered as they come first among the ranks.
Hosts hosts_of_group(const Hosts& world, const std::vector<int>& world_ranks) {
  std::vector<int> numbers(static_cast<std::size_t>(world.count()), -1);
  std::vector<int> host_of;
  int count = 0;
  for (const int rank : world_ranks) {
    int& number = numbers[static_cast<std::size_t>(world.host_of(rank))];
    if (number < 0) number = count++;
    host_of.push_back(number);
  }
  return Hosts(std::move(host_of));
}

}  // namespace

DomainShape host_shape(const DomainShape& whole, int ranks_there) {
  DomainShape shape = whole;
  shape.ranks = ranks_there;
  shape.hosts = 1;
  shape.ranks_on.clear();
  shape.journal_ranks = whole.ranks;
  return shape;
}

Hosts hosts_of(const DomainShape& whole) {
  if (whole.ranks_on.empty()) return Hosts::in_blocks(whole.ranks, whole.hosts);
  std::vector<int> host_of;
  for (std::size_t host = 0; host < whole.ranks_on.size(); ++host) {
    host_of.insert(host_of.end(), static_cast<std::size_t>(whole.ranks_on[host]), static_cast<int>(host));
  }
  return Hosts(std::move(host_of));
}

std::size_t bytes_of_host(const DomainShape& whole, int host) {
  return domain_bytes(host_shape(whole, static_cast<int>(hosts_of(whole).ranks_on(host).size())));
}

std::string name_on_host(const Hosts& hosts, int rank) {
  return fmt::format("rank {} on host {}", rank, hosts.host_of(rank));
}

HostsDomain::HostsDomain(const char* transport, const Place& place, Membership membership)
    : Domain(place.shape, transport, nullptr),
      membership_(std::move(membership)),
      hosts_(place.hosts),
      rank_(place.rank),
      host_(place.host),
      mirrors_in_(place.mirrors),
      group_network_(place.group_network) {
  const FlagLine* const mine = host_.seat(hosts_.place_of(rank_)).lines;
  for (int rank = 0; rank < place.shape.ranks; ++rank) {
    mirrors_.push_back(is_here(rank) ? nullptr : std::make_unique<Mirror>(place.shape, mine, place.mirrors));
  }
}

Result<std::unique_ptr<HostsDomain>> HostsDomain::make(const char* transport, const Place& place,
                                                       const MakeNetwork& make_network) {
  return make(transport, place, Membership(), make_network);
}

Result<std::unique_ptr<HostsDomain>> HostsDomain::make(const char* transport, const Place& place, Membership membership,
                                                       const MakeNetwork& make_network) {
  std::unique_ptr<HostsDomain> domain(new HostsDomain(transport, place, std::move(membership)));
  if (place.hosts.count() == 1) return domain;
  for (const auto& mirror : domain->mirrors_) {
    if (mirror == nullptr || mirror->theirs() != nullptr) continue;
    return error(Code::resource, "no memory for what {} keeps of ranks of other hosts", domain->name_of(place.rank));
  }
  const int host = domain->world().hosts()->host_of(domain->world_rank(place.rank));
  TUTTI_ASSIGN_OR_RETURN(
      domain->network_,
      make_network({.domain = *domain, .rank = place.rank, .host = host, .mirrors = domain->mirrors_}));
  return domain;
}

int HostsDomain::world_rank(int rank) const {
  return membership_.world == nullptr ? rank : membership_.world_ranks[static_cast<std::size_t>(rank)];
}

std::string HostsDomain::name_of(int rank) const {
  return membership_.world == nullptr ? name_on_host(hosts_, rank)
                                      : name_in_group(*membership_.world, rank, world_rank(rank));
}

Seat HostsDomain::seat(int rank) const {
  if (is_here(rank)) return host_.seat(hosts_.place_of(rank));
  Mirror& mirror = *mirrors_[static_cast<std::size_t>(rank)];
  return {.lines = mirror.theirs(), .completion = mirror.completion()};
}

ChannelMemory HostsDomain::channel_of(ChannelOf which, int from, int to) const {
  if (hosts_.share_memory(from, to)) {
    if (!is_here(from)) return {};
    const int sender = hosts_.place_of(from), receiver = hosts_.place_of(to);
    return which == ChannelOf::collectives ? host_.channel(sender, receiver) : host_.pair_channel(sender, receiver);
  }
  TUTTI_ASSERT(from == rank_ || to == rank_, "rank {} asks for a channel from {} to {}", rank_, from, to);
  if (from == rank_) return mirrors_[static_cast<std::size_t>(to)]->to_peer(which);
  return mirrors_[static_cast<std::size_t>(from)]->from_peer(which);
}

ChannelMemory HostsDomain::channel(int from, int to) const { return channel_of(ChannelOf::collectives, from, to); }
ChannelMemory HostsDomain::pair_channel(int from, int to) const { return channel_of(ChannelOf::sends, from, to); }

Status HostsDomain::allocate(const MemoryNeeds& needs) {
  MemoryNeeds here{.scratch_bytes = needs.scratch_bytes, .slice_bytes = needs.slice_bytes};
  for (const int rank : needs.scratch_of) {
    if (is_here(rank)) here.scratch_of.push_back(hosts_.place_of(rank));
  }
  const auto keep = [this](const std::vector<MemoryNeeds::Channel>& channels, std::vector<MemoryNeeds::Channel>& kept) {
    for (const auto [from, to] : channels) {
      if (is_here(from) && is_here(to)) kept.push_back({.from = hosts_.place_of(from), .to = hosts_.place_of(to)});
    }
  };
  keep(needs.channels, here.channels);
  keep(needs.pair_channels, here.pair_channels);
  return host_.allocate(here);
}

Link* HostsDomain::link(int rank) { return is_here(rank) ? nullptr : &network_->link(rank); }

Result<void*> HostsDomain::alloc_shared(int rank, std::size_t bytes) {
  return host_.alloc_shared(hosts_.place_of(rank), bytes);
}
void HostsDomain::free_shared(int rank, void* pointer) { host_.free_shared(hosts_.place_of(rank), pointer); }
bool HostsDomain::is_shared(int rank, const void* pointer, std::size_t bytes) const {
  return host_.is_shared(hosts_.place_of(rank), pointer, bytes);
}

Result<std::shared_ptr<GroupMemory>> HostsDomain::make_group_memory(std::size_t bytes) {
  return host_.make_group_memory(bytes);
}
Result<std::shared_ptr<GroupMemory>> HostsDomain::take_group_memory(const GroupMemory::Offer& offer,
                                                                    std::size_t bytes) {
  return host_.take_group_memory(offer, bytes);
}

Result<std::unique_ptr<Domain>> HostsDomain::make_group_across(const GroupPlace& place,
                                                               std::shared_ptr<GroupMemory> memory) {
  std::vector<int> seats;
  for (const int rank : place.near) {
    seats.push_back(hosts_.place_of(place.world_ranks[static_cast<std::size_t>(rank)]));
  }
  auto host = std::make_unique<GroupDomain>(host_, std::move(seats), place.memory_shape(), std::move(memory));
  const Hosts hosts = hosts_of_group(hosts_, place.world_ranks);
  DomainShape shape = place.shape;
  shape.hosts = hosts.count();
  const Place there{.shape = shape, .hosts = hosts, .rank = place.rank, .host = *host, .mirrors = mirrors_in_};
  TUTTI_ASSIGN_OR_RETURN(
      auto domain, make(transport(), there, {.world = this, .world_ranks = place.world_ranks, .host = std::move(host)},
                        group_network_));
  return std::unique_ptr<Domain>(std::move(domain));
}

HostsWorld::HostsWorld(const char* transport, const DomainShape& shape, Hosts hosts,
                       std::vector<std::unique_ptr<Domain>> memories, Mirror::Memory mirrors)
    : Domain(shape, transport, nullptr),
      hosts_(std::move(hosts)),
      mirrors_(mirrors),
      memories_(std::move(memories)),
      views_(static_cast<std::size_t>(shape.ranks)) {}

Status HostsWorld::add_view(int rank, const MakeNetwork& make_network, const MakeNetwork& group_network) {
  const HostsDomain::Place place{.shape = shape(),
                                 .hosts = hosts_,
                                 .rank = rank,
                                 .host = memory_of(rank),
                                 .mirrors = mirrors_,
                                 .group_network = group_network};
  TUTTI_ASSIGN_OR_RETURN(views_[static_cast<std::size_t>(rank)], HostsDomain::make(transport(), place, make_network));
  return {};
}

Domain& HostsWorld::seen_by(int rank) {
  const auto& view = views_[static_cast<std::size_t>(rank)];
  return view == nullptr ? static_cast<Domain&>(*this) : *view;
}

Domain& HostsWorld::any_memory() const {
  for (const auto& memory : memories_) {
    if (memory != nullptr) return *memory;
  }
  TUTTI_ASSERT(false, "a world of {} hosts, none of which is seen", hosts_.count());
}

Seat HostsWorld::seat(int rank) const {
  if (!is_seen(rank)) return {};
  return memory_of(rank).seat(hosts_.place_of(rank));
}

ChannelMemory HostsWorld::channel(int from, int to) const {
  if (!hosts_.share_memory(from, to) || !is_seen(from)) return {};
  return memory_of(from).channel(hosts_.place_of(from), hosts_.place_of(to));
}
ChannelMemory HostsWorld::pair_channel(int from, int to) const {
  if (!hosts_.share_memory(from, to) || !is_seen(from)) return {};
  return memory_of(from).pair_channel(hosts_.place_of(from), hosts_.place_of(to));
}

Result<void*> HostsWorld::alloc_shared(int rank, std::size_t bytes) {
  return memory_of(rank).alloc_shared(hosts_.place_of(rank), bytes);
}
void HostsWorld::free_shared(int rank, void* pointer) { memory_of(rank).free_shared(hosts_.place_of(rank), pointer); }
bool HostsWorld::is_shared(int rank, const void* pointer, std::size_t bytes) const {
  return memory_of(rank).is_shared(hosts_.place_of(rank), pointer, bytes);
}
Result<std::shared_ptr<GroupMemory>> HostsWorld::make_group_memory(std::size_t /*bytes*/) { return nobodys_group(); }
Result<std::shared_ptr<GroupMemory>> HostsWorld::take_group_memory(const GroupMemory::Offer& /*offer*/,
                                                                   std::size_t /*bytes*/) {
  return nobodys_group();
}

}  // namespace tutti
