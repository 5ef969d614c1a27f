// SPDX-License-Identifier: Apache-2.0
#include "harness/report/failed_job.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "harness/text/json_writer.h"

namespace tutti::harness::report {
namespace {

template <class T>
nlohmann::ordered_json or_empty(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

void put_place(nlohmann::ordered_json& document, const RankWait* where) {
  document["operation"] = where != nullptr ? nlohmann::ordered_json(where->operation) : nlohmann::ordered_json();
  document["step"] = where != nullptr ? or_empty(where->step) : nlohmann::ordered_json();
  document["peer"] = where != nullptr ? or_empty(where->peer) : nlohmann::ordered_json();
  document["bytes"] = where != nullptr ? or_empty(where->bytes) : nlohmann::ordered_json();
}

}  // namespace

std::string FailedJob::json() const {
  const auto own = std::ranges::find_if(waiting, [&](const WaitingRank& one) { return one.rank == rank; });
  const auto victim =
      std::ranges::find_if(waiting, [&](const WaitingRank& one) { return rank && one.wait.peer == rank; });
  const RankWait* const where = own != waiting.end() ? &own->wait : victim != waiting.end() ? &victim->wait : nullptr;
  nlohmann::ordered_json document{{"message", message},       {"how", how},  {"rank", or_empty(rank)}, {"host", host},
                                  {"collective", collective}, {"cell", cell}};
  put_place(document, where);
  document["waiting"] = nlohmann::ordered_json::array();
  for (const WaitingRank& one : waiting) {
    nlohmann::ordered_json item{{"rank", one.rank}};
    put_place(item, &one.wait);
    document["waiting"].push_back(std::move(item));
  }
  return json_text(document);
}

}  // namespace tutti::harness::report
