// SPDX-License-Identifier: Apache-2.0
// A transport says in one row what it is called, which ranks it serves, what it can address and how its domains are
// opened. The row stands in the transport's folder, and transport.cc has the one table of them. A transport may also be
// a shared object, libtutti_transport_NAME.so, with a row of its own (loader.h). Nobody else spells its name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "impl/transports/domain.h"
#include "impl/types/status.h"

namespace tutti {

/// Where the ranks of a job are.
enum class RanksIn : std::uint8_t {
  one_process,    ///< all of them: threads, tasks
  own_processes,  ///< a process each
};
[[nodiscard]] constexpr unsigned bit_of(RanksIn where) { return 1U << static_cast<unsigned>(where); }

/// Where ranks of other machines are met.
struct Across {
  int host = 0;           ///< that of this process: `memory` is what its ranks share
  std::string interface;  ///< the address at which this machine's ranks listen
  std::string address;    ///< where rank 0 awaits the others
  int listener = -1;      ///< rank 0: which listens there, and stays the caller's
  std::string key;        ///< of the job, in digits of base 16
};

/// What a process has for a domain, beside its shape.
struct Opening {
  int memory = -1;  ///< descriptor of `shared_bytes`, zeroed, which stays the caller's; -1: there is none
  /// Whose process this is, where each rank has one; -1: that of all ranks, or of somebody who only looks.
  int rank = -1;
  std::uint64_t seed = 1;                                       ///< of what is drawn
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< until ranks of other hosts are there
  const Across* across = nullptr;                               ///< null: all ranks are on this machine
};

/// What a transport cannot find out by itself.
struct Surroundings {
  char* (*environment)(const char* name) = nullptr;  ///< std::getenv, or what a test has in its place
};

struct Transport {
  // These two come first in every version: they are read of a shared object that may be built for another one.
  std::uint64_t number;   ///< kTransportNumber (build.h)
  const char* built_for;  ///< kTransportBuild: the same in words

  const char* name;
  const char* note;      ///< for `tutti list`
  unsigned serves;       ///< bit_of of each kind of ranks
  bool addresses_peers;  ///< a rank can read and write what peers expose, so that every plan runs
  bool spans_hosts;      ///< ranks may be on several hosts
  /// What suits that many ranks; on one host, where it does not span several. `heap_bytes` are what each wants for
  /// alloc_shared.
  DomainShape (*shape)(int ranks, int hosts, std::size_t heap_bytes);
  /// Bytes of the memory that whoever starts the ranks makes for all of them; 0 where a domain makes its own.
  std::size_t (*shared_bytes)(const DomainShape& shape, RanksIn where);
  /// Errors: resource, io, invalid_argument, timeout.
  Result<std::unique_ptr<Domain>> (*open)(const DomainShape& shape, const Opening& opening);
  /// What there is of it on this machine, for `tutti list`. Null: it needs nothing that a machine may lack.
  /// Errors: unavailable, with why ranks of this machine cannot use it.
  Result<std::string> (*devices)(const Surroundings& here) = nullptr;
  /// Each rank has a GPU of its own: it runs there, and its buffers lie there. The domain is for what is said on the
  /// host (create_on_own_device).
  bool has_gpu_each = false;

  [[nodiscard]] bool serves_ranks(RanksIn where) const { return (serves & bit_of(where)) != 0; }
};

/// The one table: those of this build, the best for its ranks first.
[[nodiscard]] std::span<const Transport* const> built_in_transports();
/// The first of the table that serves these ranks.
[[nodiscard]] const Transport& best_transport(RanksIn where);

}  // namespace tutti
