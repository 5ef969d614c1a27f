// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/suite.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/text/toml.h"
#include "impl/types/names.h"

namespace tutti::harness::cases {
namespace {

Result<std::string> text_of(const toml::node& node, std::string_view key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  return wrong_toml_type(node, key, "a text, a whole number, or a list of such");
}

/// A value, or the items of a list with commas between them, as the options have it.
Result<std::string> list_of(const toml::node& node, std::string_view key) {
  const toml::array* items = node.as_array();
  if (items == nullptr) return text_of(node, key);
  std::string list;
  for (const toml::node& item : *items) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, text_of(item, key));
    list += (list.empty() ? "" : ",") + text;
  }
  if (list.empty()) return error(Code::invalid_argument, "line {}: '{}' is empty", toml_line(node), key);
  return list;
}

Result<Suite::Sweep> sweep_of(const toml::node& node, std::span<const std::string> keys) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "sweep", "tables: [[sweep]]");
  Suite::Sweep sweep{.line = toml_line(node), .texts = {}};
  for (const auto& [key, value] : *table) {
    const std::string name(key.str());
    if (std::ranges::find(keys, name) == keys.end()) {
      const Status unknown = unknown_name("key", name, keys);
      return error(unknown.code(), "line {}: {}", toml_line(value), unknown.message());
    }
    TUTTI_ASSIGN_OR_RETURN(sweep.texts[name], list_of(value, name));
  }
  return sweep;
}

Status add_cells(const toml::node& node, Suite& suite) {
  const toml::array* ids = node.as_array();
  if (ids == nullptr) return wrong_toml_type(node, "cells", "a list of ids");
  for (const toml::node& id : *ids) {
    if (!id.is_string()) return wrong_toml_type(id, "cells", "a list of ids");
    const auto one = case_of_cell_id(id.as_string()->get());
    if (!one.is_ok()) return error(one.status().code(), "line {}: {}", toml_line(id), one.status().message());
    append_new(suite.cells, one.value());
  }
  return {};
}

}  // namespace

Result<Suite> suite_from_toml(std::string_view text, std::span<const std::string> keys) {
  TUTTI_ASSIGN_OR_RETURN(const toml::table root, parse_toml(text));
  Suite suite;
  for (const auto& [key, value] : root) {
    if (key.str() == "cells") {
      TUTTI_RETURN_IF_ERROR(add_cells(value, suite));
    } else if (key.str() == "sweep") {
      const toml::array* tables = value.as_array();
      if (tables == nullptr) return wrong_toml_type(value, "sweep", "tables: [[sweep]]");
      for (const toml::node& table : *tables) {
        TUTTI_ASSIGN_OR_RETURN(Suite::Sweep sweep, sweep_of(table, keys));
        suite.sweeps.push_back(std::move(sweep));
      }
    } else {
      const Status unknown = unknown_name("key", key.str(), std::vector<std::string>{"cells", "sweep"});
      return error(unknown.code(), "line {}: {}", toml_line(value), unknown.message());
    }
  }
  if (!suite.sweeps.empty() || !suite.cells.empty()) return suite;
  return error(Code::invalid_argument, "it has no cells: name them in [[sweep]] tables or in `cells = [...]`");
}

Result<Case> case_of_cell_id(std::string_view id) {
  const std::vector<std::string_view> parts = split(id, '/');
  const bool names_backend = parts.size() > 1 && parts[1].find('.') != std::string_view::npos;
  std::string whole(id);
  if (!names_backend && parts.size() > 1) {
    whole = fmt::format("{}/{}.{}{}", parts[0], kOwnBackend, kAuto, id.substr(parts[0].size()));
  }
  auto one = parse_case_id(whole);
  if (!one.is_ok()) return error(one.status().code(), "cell '{}': {}", shown(id), one.status().message());
  if (one.value().among.is_any()) {
    return error(Code::invalid_argument, "cell '{}' is one group of a contention: a suite has cells of all ranks",
                 shown(id));
  }
  if (one.value().backend == kOwnBackend) return one;
  return error(Code::invalid_argument, "cell '{}' names the backend '{}': without '{}/' it is a cell", shown(id),
               one.value().backend, parts[1]);
}

std::string cell_id(const Case& one) {
  std::string id = case_id(one);
  if (one.algorithm != kAuto) return id;
  const std::string part = fmt::format("/{}.{}", kOwnBackend, kAuto);
  return id.erase(id.find(part), part.size());
}

}  // namespace tutti::harness::cases
