// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/suite_file.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/accept/toml_fields.h"
#include "harness/cases/sweep.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

Status unknown_key(const toml::node& node, std::string_view key, const std::vector<std::string>& keys) {
  return at_line(node, "{}", unknown_name("key", key, keys).message());
}

Status set_bytes(const toml::node& node, std::string_view key, std::size_t& to) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(node, key));
  const auto bytes = parse_bytes(text);
  if (!bytes.is_ok()) return at_line(node, "'{}': {}", key, bytes.status().message());
  if (bytes.value() < 1 || bytes.value() > kMostMessage) {
    return at_line(node, "'{}' is '{}': allowed are 1 to 1G: did you mean '1M'?", key, shown(text));
  }
  to = static_cast<std::size_t>(bytes.value());
  return {};
}

/// Takes a stage over into the plan.
Status add_stage(const toml::node& node, AcceptPlan& plan) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "stage", "tables: [[stage]]");
  const toml::node* const named = table->get("name");
  if (named == nullptr) return at_line(node, "a stage needs `name = \"pairs\"`");
  TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(*named, "name"));
  const std::vector<std::string>& all = all_stages();
  if (std::ranges::find(all, name) == all.end()) {
    return at_line(*named, "{}", unknown_name("stage", name, all).message());
  }
  if (std::ranges::find(plan.stages, name) != plan.stages.end()) {
    return at_line(*named, "stage '{}' is there twice: each is played once", name);
  }
  plan.stages.push_back(name);
  for (const auto& [key, value] : *table) {
    if (key.str() == "name") continue;
    if (key.str() == "blocking") {
      TUTTI_ASSIGN_OR_RETURN(const bool is_blocking, flag_of(value, "blocking"));
      if (!is_blocking) plan.not_blocking.push_back(name);
    } else if (key.str() == "full" && name == "pairs") {
      TUTTI_ASSIGN_OR_RETURN(plan.pairs.is_full, flag_of(value, "full"));
    } else if (key.str() == "time" && name == "soak") {
      TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(value, "time"));
      const auto time = parse_duration(text);
      if (!time.is_ok()) return at_line(value, "'time': {}", time.status().message());
      plan.soak_seconds = std::chrono::duration<double>(time.value()).count();
    } else {
      std::vector<std::string> keys{"name", "blocking"};
      if (name == "pairs") keys.emplace_back("full");
      if (name == "soak") keys.emplace_back("time");
      return unknown_key(value, key.str(), keys);
    }
  }
  return {};
}

}  // namespace

Result<AcceptPlan> plan_from_toml(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const toml::table root, parse_toml(text));
  AcceptPlan plan;
  constexpr ShareRange kMargins{.least = kLeastMargin, .most = kMostMargin, .usual = 0.05};
  for (const auto& [key, value] : root) {
    if (key.str() == "margin") {
      TUTTI_RETURN_IF_ERROR(set_share(value, "margin", kMargins, plan.pairs.limits.margin));
    } else if (key.str() == "too_fast") {
      TUTTI_RETURN_IF_ERROR(set_share(value, "too_fast", kMargins, plan.pairs.limits.too_fast));
    } else if (key.str() == "confidence") {
      constexpr ShareRange kConfidences{.least = 0.9, .most = 0.9999, .usual = 0.999};
      TUTTI_RETURN_IF_ERROR(set_share(value, "confidence", kConfidences, plan.pairs.limits.confidence));
    } else if (key.str() == "message_size") {
      TUTTI_RETURN_IF_ERROR(set_bytes(value, "message_size", plan.pairs.bytes));
    } else if (key.str() == "seed") {
      std::int64_t seed = 0;
      TUTTI_RETURN_IF_ERROR(set_number(value, "seed", 0, std::int64_t{1} << 62, seed));
      plan.pairs.seed = static_cast<std::uint64_t>(seed);
    } else if (key.str() == "stage") {
      const toml::array* const stages = value.as_array();
      if (stages == nullptr) return wrong_toml_type(value, "stage", "tables: [[stage]]");
      plan.stages.clear();
      for (const toml::node& one : *stages) TUTTI_RETURN_IF_ERROR(add_stage(one, plan));
      if (plan.stages.empty()) return at_line(value, "'stage' names none: leave it out to play all");
    } else {
      return unknown_key(value, key.str(), {"margin", "too_fast", "confidence", "message_size", "seed", "stage"});
    }
  }
  return plan;
}

}  // namespace tutti::harness::accept
