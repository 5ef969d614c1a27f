// SPDX-License-Identifier: Apache-2.0
#include "harness/board/rank_standing.h"

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"

namespace tutti::harness::board {
namespace {

template <class Number>
void put(nlohmann::json& wait, const char* key, const std::optional<Number>& value) {
  if (value) wait[key] = *value;
}

template <class Number>
Status take(const nlohmann::json& wait, const char* key, std::optional<Number>& value) {
  if (!wait.contains(key)) return {};
  return read_number(wait, key, value.emplace());
}

}  // namespace

std::string to_json(const RankStanding& standing) {
  nlohmann::json all{{"text", standing.text}};
  if (standing.wait) {
    nlohmann::json& wait = all["wait"] = {{"operation", standing.wait->operation}};
    put(wait, "step", standing.wait->step);
    put(wait, "peer", standing.wait->peer);
    put(wait, "bytes", standing.wait->bytes);
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<RankStanding> standing_from_json(std::string_view text) {
  return read_json(Code::invalid_argument, "where a rank stands", text,
                   [](const nlohmann::json& all) -> Result<RankStanding> {
                     RankStanding standing{.text = all.at("text")};
                     if (!all.contains("wait")) return standing;
                     const nlohmann::json& its = all.at("wait");
                     RankWait wait;
                     TUTTI_RETURN_IF_ERROR(read_number(its, "operation", wait.operation, 0));
                     TUTTI_RETURN_IF_ERROR(take(its, "step", wait.step));
                     TUTTI_RETURN_IF_ERROR(take(its, "peer", wait.peer));
                     TUTTI_RETURN_IF_ERROR(take(its, "bytes", wait.bytes));
                     standing.wait = wait;
                     return standing;
                   });
}

}  // namespace tutti::harness::board
