// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/transports.h"

#include <algorithm>
#include <cstdlib>

#include "impl/device/opener.h"
#include "impl/transports/loader.h"

namespace tutti::harness::cases {

const std::string& usual_transport(RanksAs ranks_as) {
  static const std::string of_processes = best_transport(ranks_in(RanksAs::processes)).name;
  static const std::string of_threads = best_transport(ranks_in(RanksAs::threads)).name;
  return ranks_in(ranks_as) == RanksIn::own_processes ? of_processes : of_threads;
}

bool serves(const Transport& transport, RanksAs ranks_as) {
  const bool are_apart = ranks_as->is_on_device && transport.spans_hosts;  // one device has all blocks
  return transport.serves_ranks(ranks_in(ranks_as)) && !are_apart;
}

const Transport& transport_between_hosts() {
  const auto table = built_in_transports();
  const auto spans = [](const Transport* one) {
    return one->spans_hosts && one->serves_ranks(ranks_in(RanksAs::processes));
  };
  const auto found = std::ranges::find_if(table, spans);
  TUTTI_ASSERT(found != table.end(), "no transport spans hosts");
  return **found;
}

Result<const Transport*> transport_for(std::string_view name, RanksAs ranks_as, std::span<const std::string> folders) {
  TUTTI_ASSIGN_OR_RETURN(const Transport* const transport, find_transport(name, folders));
  if (serves(*transport, ranks_as)) return transport;
  return error(Code::invalid_argument, "transport '{}' with {}: did you mean '{}'?", name, to_string(ranks_as),
               usual_transport(ranks_as));
}

Result<std::string> devices_of(const Transport& transport, std::span<const std::string> folders) {
  if (transport.devices == nullptr) return std::string();
  TUTTI_ASSIGN_OR_RETURN(std::string devices, transport.devices({.environment = std::getenv}));
  if (transport.has_gpu_each) TUTTI_RETURN_IF_ERROR(find_kernels(folders).status());
  return devices;
}

Status is_usable_here(const Transport& transport, std::span<const std::string> folders) {
  const Status status = devices_of(transport, folders).status();
  if (status.is_ok()) return status;
  return error(status.code(), "transport {}: {}", transport.name, status.message());
}

}  // namespace tutti::harness::cases
