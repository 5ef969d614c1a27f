// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/across.h"

#include <nlohmann/json.hpp>

namespace tutti::harness::launch {

std::string to_json(const AcrossPlace& place) {
  return nlohmann::json{{"interface", place.interface},
                        {"exchange_address", place.exchange_address},
                        {"domain_address", place.domain_address},
                        {"secret", place.secret},
                        {"first_on_cores", place.first_on_cores},
                        {"ranks_on_cores", place.ranks_on_cores},
                        {"lead_ns", place.lead_ns}}
      .dump();
}

Result<AcrossPlace> across_from_json(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    return AcrossPlace{.interface = json.at("interface"),
                       .exchange_address = json.at("exchange_address"),
                       .domain_address = json.at("domain_address"),
                       .secret = json.at("secret"),
                       .first_on_cores = json.at("first_on_cores"),
                       .ranks_on_cores = json.at("ranks_on_cores"),
                       .lead_ns = json.at("lead_ns")};
  } catch (const nlohmann::json::exception&) {
    return error(Code::invalid_argument, "what the launcher says of the other machines cannot be read");
  }
}

}  // namespace tutti::harness::launch
