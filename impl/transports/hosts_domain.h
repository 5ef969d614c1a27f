// SPDX-License-Identifier: Apache-2.0
// A domain over several hosts, as one of its ranks sees it: the memory of its own host, and a mirror of each rank of
// the others. Where all hosts are pretended within one process, HostsWorld has their memory and a view for each rank.
//
// A group on several hosts is such a domain too. It has memory of its own on each host, and a network of its own. So it
// fails, and goes, without its world; and each pair of its ranks that talks has a connection for it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "impl/transports/domain.h"
#include "impl/transports/group_domain.h"
#include "impl/transports/hosts.h"
#include "impl/transports/mirror.h"

namespace tutti {

/// Of the memory of one of its hosts.
[[nodiscard]] DomainShape host_shape(const DomainShape& whole, int ranks_there);
/// As the shape has them.
[[nodiscard]] Hosts hosts_of(const DomainShape& whole);
/// Of the memory that the ranks of a real host share.
[[nodiscard]] std::size_t bytes_of_host(const DomainShape& whole, int host);
/// "rank 3 on host 1".
[[nodiscard]] std::string name_on_host(const Hosts& hosts, int rank);

/// What a network needs to know of the rank that it serves.
struct Outlook {
  const Domain& domain;  ///< has its names and its shape; it outlives the network
  int rank = 0;
  int host = 0;  ///< that of the rank, in the world
  /// [rank], null for those of its own host.
  const std::vector<std::unique_ptr<Mirror>>& mirrors;
};
using MakeNetwork = std::function<Result<std::unique_ptr<Network>>(const Outlook&)>;

class HostsDomain final : public Domain {
 public:
  struct Place {
    DomainShape shape;  ///< of the whole
    Hosts hosts;
    int rank = 0;
    Domain& host;  ///< the memory of its own host
    Mirror::Memory mirrors = Mirror::Memory::on_first_use;
    MakeNetwork group_network = {};  ///< of a world: that of a group of its ranks
  };
  /// Of a world. What `place` refers to outlives the domain. Errors: resource; those of `make_network`.
  [[nodiscard]] static Result<std::unique_ptr<HostsDomain>> make(const char* transport, const Place& place,
                                                                 const MakeNetwork& make_network);

  [[nodiscard]] Seat seat(int rank) const override;
  [[nodiscard]] ChannelMemory channel(int from, int to) const override;
  [[nodiscard]] ChannelMemory pair_channel(int from, int to) const override;
  [[nodiscard]] AbortLine& abort_line() const override { return host_.abort_line(); }
  [[nodiscard]] Doorbell& doorbell() const override { return host_.doorbell(); }
  [[nodiscard]] const Hosts* hosts() const override { return &hosts_; }
  [[nodiscard]] Network* network() override { return network_.get(); }
  [[nodiscard]] Link* link(int rank) override;
  [[nodiscard]] bool allocates_when_needed() const override { return host_.allocates_when_needed(); }
  /// Mirrors are not of the host's memory.
  [[nodiscard]] Status allocate(const MemoryNeeds& needs) override;
  [[nodiscard]] Domain& world() override { return membership_.world == nullptr ? *this : *membership_.world; }
  [[nodiscard]] int world_rank(int rank) const override;
  [[nodiscard]] std::string name_of(int rank) const override;

  [[nodiscard]] Result<void*> alloc_shared(int rank, std::size_t bytes) override;
  void free_shared(int rank, void* pointer) override;
  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override;
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override;
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer,
                                                                       std::size_t bytes) override;
  [[nodiscard]] Result<std::unique_ptr<Domain>> make_group_across(const GroupPlace& place,
                                                                  std::shared_ptr<GroupMemory> memory) override;

 private:
  /// What the domain of a group has beside.
  struct Membership {
    HostsDomain* world = nullptr;  ///< null: it is no group
    std::vector<int> world_ranks = {};
    std::unique_ptr<Domain> host = nullptr;  ///< the memory of its own host
  };
  HostsDomain(const char* transport, const Place& place, Membership membership);
  [[nodiscard]] static Result<std::unique_ptr<HostsDomain>> make(const char* transport, const Place& place,
                                                                 Membership membership,
                                                                 const MakeNetwork& make_network);
  [[nodiscard]] ChannelMemory channel_of(ChannelOf which, int from, int to) const;
  [[nodiscard]] bool is_here(int rank) const { return hosts_.share_memory(rank, rank_); }

  Membership membership_;
  Hosts hosts_;
  int rank_;
  Domain& host_;
  Mirror::Memory mirrors_in_;
  MakeNetwork group_network_;
  std::vector<std::unique_ptr<Mirror>> mirrors_;  // [rank]
  std::unique_ptr<Network> network_;              // gone before what it writes to
};

/// All hosts, for whoever can look at the memory of each: ranks that are threads or tasks of this process, and the
/// launcher of a job whose hosts are pretended.
class HostsWorld final : public Domain {
 public:
  /// `memories[host]`; null where this process does not see that host's.
  HostsWorld(const char* transport, const DomainShape& shape, Hosts hosts,
             std::vector<std::unique_ptr<Domain>> memories, Mirror::Memory mirrors = Mirror::Memory::on_first_use);
  /// Makes the view of one rank; `group_network` makes those of the rank's groups. Errors: resource; those of
  /// `make_network`.
  Status add_view(int rank, const MakeNetwork& make_network, const MakeNetwork& group_network);

  /// Requires: add_view of that rank, or of none: then whoever asks only looks.
  [[nodiscard]] Domain& seen_by(int rank) override;
  [[nodiscard]] const Hosts* hosts() const override { return &hosts_; }
  [[nodiscard]] Seat seat(int rank) const override;
  /// Of ranks of one host.
  [[nodiscard]] ChannelMemory channel(int from, int to) const override;
  [[nodiscard]] ChannelMemory pair_channel(int from, int to) const override;
  /// Of the first host that is seen.
  [[nodiscard]] AbortLine& abort_line() const override { return any_memory().abort_line(); }
  [[nodiscard]] Doorbell& doorbell() const override { return any_memory().doorbell(); }
  [[nodiscard]] std::string name_of(int rank) const override { return name_on_host(hosts_, rank); }

  [[nodiscard]] Result<void*> alloc_shared(int rank, std::size_t bytes) override;
  void free_shared(int rank, void* pointer) override;
  [[nodiscard]] bool is_shared(int rank, const void* pointer, std::size_t bytes) const override;
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> make_group_memory(std::size_t bytes) override;
  [[nodiscard]] Result<std::shared_ptr<GroupMemory>> take_group_memory(const GroupMemory::Offer& offer,
                                                                       std::size_t bytes) override;

 private:
  [[nodiscard]] bool is_seen(int rank) const {
    return memories_[static_cast<std::size_t>(hosts_.host_of(rank))] != nullptr;
  }
  [[nodiscard]] Domain& memory_of(int rank) const { return *memories_[static_cast<std::size_t>(hosts_.host_of(rank))]; }
  /// Of one host that is seen.
  [[nodiscard]] Domain& any_memory() const;
  Hosts hosts_;
  Mirror::Memory mirrors_;
  std::vector<std::unique_ptr<Domain>> memories_;    // [host]
  std::vector<std::unique_ptr<HostsDomain>> views_;  // [rank], null where nobody has asked for it
};

}  // namespace tutti
