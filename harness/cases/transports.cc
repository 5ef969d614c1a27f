// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/transports.h"

#include "harness/cases/case.h"
#include "impl/transports/loader.h"

namespace tutti::harness::cases {

const std::string& usual_transport(RanksAs ranks_as) {
  static const std::string of_processes = best_transport(ranks_in(RanksAs::processes)).name;
  static const std::string of_threads = best_transport(ranks_in(RanksAs::threads)).name;
  return ranks_in(ranks_as) == RanksIn::own_processes ? of_processes : of_threads;
}

Result<const Transport*> transport_for(std::string_view name, RanksAs ranks_as, std::span<const std::string> folders) {
  TUTTI_ASSIGN_OR_RETURN(const Transport* const transport, find_transport(name, folders));
  if (transport->serves_ranks(ranks_in(ranks_as))) return transport;
  return error(Code::invalid_argument, "transport '{}' with {}: did you mean '{}'?", name, to_string(ranks_as),
               usual_transport(ranks_as));
}

}  // namespace tutti::harness::cases
