// SPDX-License-Identifier: Apache-2.0
#include "harness/board/across.h"

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"

namespace tutti::harness::board {

std::string to_json(const AcrossPlace& place) {
  return nlohmann::json{{"interface", place.interface},           {"exchange_address", place.exchange_address},
                        {"domain_address", place.domain_address}, {"first_on_cores", place.first_on_cores},
                        {"ranks_on_cores", place.ranks_on_cores}, {"lead_ns", place.lead_ns}}
      .dump();
}

Result<AcrossPlace> across_from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "what the launcher says of the other hosts", text,
                   [](const nlohmann::json& all) -> Result<AcrossPlace> {
                     AcrossPlace place{.interface = all.at("interface"),
                                       .exchange_address = all.at("exchange_address"),
                                       .domain_address = all.at("domain_address"),
                                       .key = {}};
                     TUTTI_RETURN_IF_ERROR(read_number(all, "first_on_cores", place.first_on_cores, 0));
                     TUTTI_RETURN_IF_ERROR(read_number(all, "ranks_on_cores", place.ranks_on_cores, 1));
                     TUTTI_RETURN_IF_ERROR(read_number(all, "lead_ns", place.lead_ns));
                     return place;
                   });
}

}  // namespace tutti::harness::board
