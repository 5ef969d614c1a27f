// SPDX-License-Identifier: Apache-2.0
// The memory of a job whose ranks are processes: | noticeboard | memory of host 0 | of host 1 | ... |. A rank maps the
// noticeboard and the memory of its own host, and no other. On the noticeboard rank 0 says where it listens for the
// meeting and what the job's key is. On real hosts that is what a launcher says; here it needs none.
#include "impl/transports/met_world.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <thread>

#include "impl/tcp/meeting.h"
#include "impl/tcp/socket.h"
#include "impl/transports/local/domain.h"
#include "impl/transports/shm/domain.h"

namespace tutti {
namespace {

using tcp::Listener;
using tcp::Secret;

constexpr const char* kInterface = "127.0.0.1";  // of pretended hosts
constexpr std::size_t kWholePage = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kWholePage - 1) / kWholePage * kWholePage; }

struct Noticeboard {
  std::atomic<std::uint32_t> is_written;
  std::array<char, 60> address;
  Secret key;
};
static_assert(sizeof(Noticeboard) <= kWholePage);

/// Of the noticeboard; unmapped when it is gone.
class MappedBoard {
 public:
  [[nodiscard]] static Result<MappedBoard> map(int memory) {
    void* const base = mmap(nullptr, kWholePage, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (base == MAP_FAILED)
      return error(Code::io, "the job's shared memory (descriptor {}): {}", memory, std::strerror(errno));
    return MappedBoard(static_cast<Noticeboard*>(base));
  }
  MappedBoard(MappedBoard&& other) noexcept : board_(std::exchange(other.board_, nullptr)) {}
  MappedBoard& operator=(MappedBoard&&) = delete;
  ~MappedBoard() {
    if (board_ != nullptr) munmap(board_, kWholePage);
  }
  [[nodiscard]] Noticeboard& operator*() const { return *board_; }
  [[nodiscard]] Noticeboard* operator->() const { return board_; }

 private:
  explicit MappedBoard(Noticeboard* board) : board_(board) {}
  Noticeboard* board_;
};

DomainShape shape_of_host(const DomainShape& shape, const Hosts& hosts, int host) {
  return host_shape(shape, static_cast<int>(hosts.ranks_on(host).size()));
}

std::size_t offset_of_host(const DomainShape& shape, const Hosts& hosts, int host) {
  std::size_t offset = kWholePage;
  for (int before = 0; before < host; ++before) {
    offset += whole_pages(domain_bytes(shape_of_host(shape, hosts, before)));
  }
  return offset;
}

/// Memories of the hosts for which `is_seen`; null for the others.
Result<std::vector<std::unique_ptr<Domain>>> map_hosts(const DomainShape& shape, const Hosts& hosts, int memory,
                                                       const std::function<bool(int host)>& is_seen) {
  std::vector<std::unique_ptr<Domain>> memories(static_cast<std::size_t>(hosts.count()));
  for (int host = 0; host < hosts.count(); ++host) {
    if (!is_seen(host)) continue;
    TUTTI_ASSIGN_OR_RETURN(
        memories[static_cast<std::size_t>(host)],
        shm::open_domain(shape_of_host(shape, hosts, host), memory, offset_of_host(shape, hosts, host)));
  }
  return memories;
}

/// The addresses of all ranks; this one's is `mine`.
Result<std::vector<std::string>> meet_at_board(const MappedBoard& board, const Opening& opening, int ranks,
                                               const Secret& key, const Listener& listener, const std::string& mine) {
  return tcp::meet({.key = key,
                    .role = tcp::Role::meeting_of_links,
                    .process = opening.rank,
                    .processes = ranks,
                    .text = mine,
                    .address = board->address.data(),
                    .listener = listener.socket.get(),
                    .timeout = opening.timeout});
}

/// Rank 0 writes the board; the others wait for that.
Status come_to_board(const MappedBoard& board, const Opening& opening, Listener& listener) {
  if (opening.rank == 0) {
    TUTTI_ASSIGN_OR_RETURN(listener, tcp::listen_on(kInterface));
    TUTTI_ASSIGN_OR_RETURN(board->key, tcp::draw_secret());
    TUTTI_ASSERT(listener.address.size() < board->address.size(), "an address of {} bytes", listener.address.size());
    std::memcpy(board->address.data(), listener.address.data(), listener.address.size());
    board->is_written.store(1, std::memory_order_release);
    return {};
  }
  const auto end = std::chrono::steady_clock::now() + opening.timeout;
  while (board->is_written.load(std::memory_order_acquire) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      return error(Code::timeout, "rank 0 does not say where it listens, within {:.1f} s",
                   std::chrono::duration<double>(opening.timeout).count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

std::unique_ptr<HostsWorld> world_of(const MetTransport& transport, const DomainShape& shape, const Hosts& hosts,
                                     std::vector<std::unique_ptr<Domain>> memories) {
  return std::make_unique<HostsWorld>(
      transport.name, shape, hosts, std::move(memories),
      transport.mirrors_in_one_piece ? Mirror::Memory::one_piece : Mirror::Memory::on_first_use);
}

/// Where the ranks of a job are reached, and what shows that a guest is one of them.
struct Site {
  std::string interface;
  bool is_pretended = false;
  Secret key = {};
};

/// Makes networks at `site`, which may be filled in until the first is made. Their addresses are still to be told.
MakeNetwork network_at(const MetTransport& transport, std::shared_ptr<const Site> site) {
  return [make = transport.make, site = std::move(site)](const Outlook& outlook) {
    return make(
        {.outlook = outlook, .interface = site->interface, .is_pretended = site->is_pretended, .key = site->key});
  };
}

/// A job on pretended hosts; `opening.memory` is that of all of them.
Result<std::unique_ptr<Domain>> open_as_rank(const MetTransport& transport, const DomainShape& shape,
                                             const Opening& opening) {
  const Hosts hosts = hosts_of(shape);
  const auto is_mine = [&](int host) { return host == hosts.host_of(opening.rank); };
  TUTTI_ASSIGN_OR_RETURN(auto memories, map_hosts(shape, hosts, opening.memory, is_mine));
  auto world = world_of(transport, shape, hosts, std::move(memories));
  const auto site = std::make_shared<Site>(Site{.interface = kInterface, .is_pretended = true});
  const MakeNetwork network_here = network_at(transport, site);
  const MakeNetwork make = [&](const Outlook& outlook) -> Result<std::unique_ptr<Network>> {
    TUTTI_ASSIGN_OR_RETURN(const MappedBoard board, MappedBoard::map(opening.memory));
    Listener listener;
    TUTTI_RETURN_IF_ERROR(come_to_board(board, opening, listener));
    site->key = board->key;
    TUTTI_ASSIGN_OR_RETURN(auto network, network_here(outlook));
    TUTTI_ASSIGN_OR_RETURN(auto addresses,
                           meet_at_board(board, opening, shape.ranks, site->key, listener, network->address()));
    network->set_addresses(std::move(addresses));
    return network;
  };
  TUTTI_RETURN_IF_ERROR(world->add_view(opening.rank, make, network_here));
  return std::unique_ptr<Domain>(std::move(world));
}

/// Of a job on several machines; `opening.memory` is what the ranks of this one share.
Result<std::unique_ptr<Domain>> open_across(const MetTransport& transport, const DomainShape& shape,
                                            const Opening& opening) {
  const Across& across = *opening.across;
  const Hosts hosts = hosts_of(shape);
  std::vector<std::unique_ptr<Domain>> memories(static_cast<std::size_t>(hosts.count()));
  TUTTI_ASSIGN_OR_RETURN(memories[static_cast<std::size_t>(across.host)],
                         shm::open_domain(shape_of_host(shape, hosts, across.host), opening.memory));
  auto world = world_of(transport, shape, hosts, std::move(memories));
  if (opening.rank < 0) return std::unique_ptr<Domain>(std::move(world));
  const auto site = std::make_shared<Site>(Site{.interface = across.interface});
  const MakeNetwork network_here = network_at(transport, site);
  const MakeNetwork make = [&](const Outlook& outlook) -> Result<std::unique_ptr<Network>> {
    TUTTI_ASSIGN_OR_RETURN(site->key, tcp::secret_from(across.key));
    TUTTI_ASSIGN_OR_RETURN(auto network, network_here(outlook));
    TUTTI_ASSIGN_OR_RETURN(auto addresses, tcp::meet({.key = site->key,
                                                      .role = tcp::Role::meeting_of_links,
                                                      .process = opening.rank,
                                                      .processes = shape.ranks,
                                                      .text = network->address(),
                                                      .address = across.address,
                                                      .listener = across.listener,
                                                      .timeout = opening.timeout}));
    network->set_addresses(std::move(addresses));
    return network;
  };
  TUTTI_RETURN_IF_ERROR(world->add_view(opening.rank, make, network_here));
  return std::unique_ptr<Domain>(std::move(world));
}

}  // namespace

std::size_t bytes_of_met_world(const DomainShape& shape, RanksIn where) {
  if (where == RanksIn::one_process) return 0;
  const Hosts hosts = hosts_of(shape);
  return offset_of_host(shape, hosts, hosts.count());
}

Result<std::unique_ptr<Domain>> open_met_world(const MetTransport& transport, const DomainShape& shape,
                                               const Opening& opening) {
  if (opening.across != nullptr) return open_across(transport, shape, opening);
  const Hosts hosts = hosts_of(shape);
  if (opening.memory < 0) return open_met_world_in_process(transport, shape, hosts);
  if (opening.rank >= 0) return open_as_rank(transport, shape, opening);
  TUTTI_ASSIGN_OR_RETURN(auto memories, map_hosts(shape, hosts, opening.memory, [](int) { return true; }));
  return std::unique_ptr<Domain>(world_of(transport, shape, hosts, std::move(memories)));
}

Result<std::unique_ptr<Domain>> open_met_world_in_process(const MetTransport& transport, const DomainShape& shape,
                                                          const Hosts& hosts, const std::string& interface,
                                                          const Route& route) {
  std::vector<std::unique_ptr<Domain>> memories;
  for (int host = 0; host < hosts.count(); ++host) {
    TUTTI_ASSIGN_OR_RETURN(auto memory, local::open_domain(shape_of_host(shape, hosts, host)));
    memories.push_back(std::move(memory));
  }
  auto world = world_of(transport, shape, hosts, std::move(memories));
  TUTTI_ASSIGN_OR_RETURN(const Secret key, tcp::draw_secret());
  const MakeNetwork network_here =
      network_at(transport, std::make_shared<Site>(Site{.interface = interface, .is_pretended = true, .key = key}));
  std::vector<Network*> networks;
  std::vector<std::string> addresses;
  const MakeNetwork make = [&](const Outlook& outlook) -> Result<std::unique_ptr<Network>> {
    TUTTI_ASSIGN_OR_RETURN(auto network, network_here(outlook));
    networks.push_back(network.get());
    addresses.push_back(network->address());
    return network;
  };
  for (int rank = 0; rank < shape.ranks; ++rank) {
    TUTTI_RETURN_IF_ERROR(world->add_view(rank, make, network_here));
  }
  for (int rank = 0; rank < static_cast<int>(networks.size()); ++rank) {
    std::vector<std::string> seen = addresses;
    for (int peer = 0; route && peer < shape.ranks; ++peer) {
      std::string& address = seen[static_cast<std::size_t>(peer)];
      address = route(rank, peer, address);
    }
    networks[static_cast<std::size_t>(rank)]->set_addresses(std::move(seen));
  }
  return std::unique_ptr<Domain>(std::move(world));
}

}  // namespace tutti
