// SPDX-License-Identifier: Apache-2.0
// What a rank of a job on several hosts learns about its host and the others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/floors.h"
#include "impl/types/descriptor.h"
#include "impl/types/status.h"

namespace tutti::harness::board {

struct AcrossPlace {
  std::string interface;         ///< the address at which ranks of this host listen
  std::string exchange_address;  ///< at which rank 0 accepts the others for the exchange
  std::string domain_address;    ///< and for the domain
  std::string key;               ///< of the job, in digits of base 16; to_json leaves it out: it crosses no network
  int first_on_cores = 0;        ///< ranks of the job that the same kernel runs for hosts before this one
  int ranks_on_cores = 1;        ///< and for all: more than this host's if several are one machine
  std::int64_t lead_ns = 0;      ///< of this host's clock before the launcher's, to some milliseconds
};

[[nodiscard]] std::string to_json(const AcrossPlace& place);
/// Errors: invalid_argument.
[[nodiscard]] Result<AcrossPlace> across_from_json(std::string_view text);

/// Rank 0's sockets, which listen at the two addresses.
struct AcrossListeners {
  Descriptor exchange, domain;
};

}  // namespace tutti::harness::board
