// SPDX-License-Identifier: Apache-2.0
#include "impl/transports/hosts_domain.h"

namespace tutti {
namespace {

Status no_groups() { return error(Code::unavailable, "no group: its ranks would share no memory"); }

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

HostsDomain::HostsDomain(const char* transport, const Place& place)
    : Domain(place.shape, transport, nullptr), hosts_(place.hosts), rank_(place.rank), host_(place.host) {
  const FlagLine* const mine = host_.seat(hosts_.place_of(rank_)).lines;
  for (int rank = 0; rank < place.shape.ranks; ++rank) {
    mirrors_.push_back(is_here(rank) ? nullptr : std::make_unique<Mirror>(place.shape, mine, place.mirrors));
  }
}

Result<std::unique_ptr<HostsDomain>> HostsDomain::make(const char* transport, const Place& place,
                                                       const MakeNetwork& make_network) {
  std::unique_ptr<HostsDomain> domain(new HostsDomain(transport, place));
  if (place.hosts.count() == 1) return domain;
  for (const auto& mirror : domain->mirrors_) {
    if (mirror == nullptr || mirror->theirs() != nullptr) continue;
    return error(Code::resource, "no memory for what {} keeps of ranks of other hosts",
                 name_on_host(place.hosts, place.rank));
  }
  TUTTI_ASSIGN_OR_RETURN(
      domain->network_,
      make_network(
          {.hosts = domain->hosts_, .rank = domain->rank_, .shape = domain->shape(), .mirrors = domain->mirrors_}));
  return domain;
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

Link* HostsDomain::link(int rank) { return is_here(rank) ? nullptr : &network_->link(rank); }

Result<void*> HostsDomain::alloc_shared(int rank, std::size_t bytes) {
  return host_.alloc_shared(hosts_.place_of(rank), bytes);
}
void HostsDomain::free_shared(int rank, void* pointer) { host_.free_shared(hosts_.place_of(rank), pointer); }
bool HostsDomain::is_shared(int rank, const void* pointer, std::size_t bytes) const {
  return host_.is_shared(hosts_.place_of(rank), pointer, bytes);
}

Result<std::shared_ptr<GroupMemory>> HostsDomain::make_group_memory(std::size_t bytes) {
  if (hosts_.count() > 1) return no_groups();
  return host_.make_group_memory(bytes);
}
Result<std::shared_ptr<GroupMemory>> HostsDomain::take_group_memory(const GroupMemory::Offer& offer,
                                                                    std::size_t bytes) {
  if (hosts_.count() > 1) return no_groups();
  return host_.take_group_memory(offer, bytes);
}

HostsWorld::HostsWorld(const char* transport, const DomainShape& shape, Hosts hosts,
                       std::vector<std::unique_ptr<Domain>> memories, Mirror::Memory mirrors)
    : Domain(shape, transport, nullptr),
      hosts_(std::move(hosts)),
      mirrors_(mirrors),
      memories_(std::move(memories)),
      views_(static_cast<std::size_t>(shape.ranks)) {}

Status HostsWorld::add_view(int rank, const MakeNetwork& make_network) {
  const HostsDomain::Place place{
      .shape = shape(), .hosts = hosts_, .rank = rank, .host = memory_of(rank), .mirrors = mirrors_};
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
Result<std::shared_ptr<GroupMemory>> HostsWorld::make_group_memory(std::size_t bytes) {
  if (hosts_.count() > 1) return no_groups();
  return any_memory().make_group_memory(bytes);
}
Result<std::shared_ptr<GroupMemory>> HostsWorld::take_group_memory(const GroupMemory::Offer& offer, std::size_t bytes) {
  if (hosts_.count() > 1) return no_groups();
  return any_memory().take_group_memory(offer, bytes);
}

}  // namespace tutti
