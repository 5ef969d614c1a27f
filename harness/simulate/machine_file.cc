// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/machine_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/simulate/network_file.h"
#include "harness/text/toml.h"
#include "impl/types/names.h"

namespace tutti::harness::simulate {
namespace {

constexpr double kMostNs = 1e12;
constexpr double kMostBytes = 1e15;

/// A key of a table, and where its value goes: one of the two.
struct Key {
  std::string_view name;
  double* number = nullptr;
  SizeTable* table = nullptr;
  bool is_needed = true;
};

Result<double> number_of(const toml::node& node, std::string_view key, double most, std::string_view unit) {
  const std::optional<double> number = node.value<double>();
  if (!number || !node.is_number()) return wrong_toml_type(node, key, fmt::format("a number of {}", unit));
  if (*number >= 0 && *number <= most) return *number;
  return at_line(node, "'{}' is {}: allowed are 0 to {:g} {}: did you mean {:g}?", key, *number, most, unit,
                 *number > most ? most : 0.0);
}

Result<SizeTable> table_of(const toml::node& node, std::string_view key) {
  if (node.is_number()) {
    TUTTI_ASSIGN_OR_RETURN(const double ns, number_of(node, key, kMostNs, "ns"));
    return SizeTable{{0, ns}};
  }
  const toml::array* const pairs = node.as_array();
  constexpr std::string_view kForm = "a number of ns, or a list such as [[0, 100], [65536, 900]] of bytes and ns";
  if (pairs == nullptr || pairs->empty()) return wrong_toml_type(node, key, kForm);
  std::vector<SizeTable::Point> points;
  for (const toml::node& one : *pairs) {
    const toml::array* const pair = one.as_array();
    if (pair == nullptr || pair->size() != 2) return wrong_toml_type(one, key, kForm);
    SizeTable::Point point;
    TUTTI_ASSIGN_OR_RETURN(point.bytes, number_of(*pair->get(0), key, kMostBytes, "bytes"));
    TUTTI_ASSIGN_OR_RETURN(point.ns, number_of(*pair->get(1), key, kMostNs, "ns"));
    if (!points.empty() && point.bytes <= points.back().bytes) {
      return at_line(one, "'{}': {} bytes stand after {}: sizes rise", key, point.bytes, points.back().bytes);
    }
    points.push_back(point);
  }
  // Beyond the last point the last line goes on, so a falling one would end below 0.
  if (points.size() > 1 && points.back().ns < points[points.size() - 2].ns) {
    return at_line(node, "'{}': the last time is less than the one before it, and would fall below 0", key);
  }
  return SizeTable(std::move(points));
}

Status read_keys(const toml::node& node, std::string_view title, std::span<const Key> keys) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, title, fmt::format("a table: [{}]", title));
  std::vector<std::string> names;
  for (const Key& key : keys) names.emplace_back(key.name);
  for (const auto& [name, value] : *table) {
    const auto key = std::ranges::find(keys, name.str(), &Key::name);
    if (key == keys.end()) return at_line(value, "{}", unknown_name("key", name.str(), names).message());
    if (key->number != nullptr) {
      const bool is_bytes = key->name == "eager";
      TUTTI_ASSIGN_OR_RETURN(*key->number,
                             number_of(value, key->name, is_bytes ? kMostBytes : kMostNs, is_bytes ? "bytes" : "ns"));
    } else {
      TUTTI_ASSIGN_OR_RETURN(*key->table, table_of(value, key->name));
    }
  }
  for (const Key& key : keys) {
    if (key.is_needed && !table->contains(key.name)) return at_line(node, "[{}] needs `{} = ...`", title, key.name);
  }
  return {};
}

std::array<Key, 4> keys_of(LinkCosts& link) {
  return {Key{"latency", &link.latency}, Key{"send", nullptr, &link.send}, Key{"receive", nullptr, &link.receive},
          Key{"wire", nullptr, &link.wire}};
}

Status read_far(const toml::node& node, Model& model) {
  std::vector<Key> keys{{"gap", &model.far.gap, nullptr, false},
                        {"eager", &model.eager_bytes, nullptr, false},
                        {"handshake", &model.handshake, nullptr, false}};
  std::ranges::copy(keys_of(model.far), std::back_inserter(keys));
  TUTTI_RETURN_IF_ERROR(read_keys(node, "far", keys));
  const toml::table& table = *node.as_table();
  if (table.contains("eager") == table.contains("handshake")) return {};
  return at_line(node, "[far] has one of `eager` and `handshake`: write both or none");
}

Status read_key(std::string_view key, const toml::node& node, Machine& machine) {
  Model& model = machine.model;
  if (key == "name") {
    const auto* const name = node.as_string();
    constexpr std::size_t kLongest = 60;
    if (name == nullptr || name->get().empty() || name->get().size() > kLongest || shown(name->get()) != name->get()) {
      return wrong_toml_type(node, key, fmt::format("a text of 1 to {} printable characters", kLongest));
    }
    machine.name = name->get();
  } else if (key == "ranks_per_node" || key == "rails" || key == "ranks_per_cache") {
    const auto* const number = node.as_integer();
    if (number == nullptr) return wrong_toml_type(node, key, "a whole number");
    constexpr std::int64_t kMost = kMostRanksOfMachine;
    if (number->get() < 1 || number->get() > kMost) {
      return at_line(node, "'{}' is {}: allowed are 1 to {}: did you mean {}?", key, number->get(), kMost,
                     std::clamp<std::int64_t>(number->get(), 1, kMost));
    }
    (key == "rails"            ? machine.rails
     : key == "ranks_per_node" ? machine.ranks_per_node
                               : machine.ranks_per_cache) = static_cast<int>(number->get());
  } else if (key == "near") {
    machine.has_near = true;
    return read_keys(node, key, keys_of(model.near));
  } else if (key == "far") {
    machine.has_far = true;
    return read_far(node, model);
  } else if (key == "node") {
    const std::array keys{Key{"flag", &model.flag}, Key{"look", &model.look, nullptr, false},
                          Key{"reduce", nullptr, &model.reduce}, Key{"copy", nullptr, &model.copy},
                          Key{"read", nullptr, &model.read}};
    return read_keys(node, key, keys);
  } else if (key == "cache") {
    const std::array keys{Key{"flag", &model.cache.flag}, Key{"look", &model.cache.look, nullptr, false},
                          Key{"read", nullptr, &model.cache.read}};
    return read_keys(node, key, keys);
  } else if (key == "network") {
    return read_network(node, machine.network);
  } else if (key != "fault") {  // which names parts of all the rest
    const std::vector<std::string> keys{"name", "ranks_per_node", "ranks_per_cache", "rails",   "near",
                                        "far",  "node",           "cache",           "network", "fault"};
    return at_line(node, "{}", unknown_name("key", key, keys).message());
  }
  return {};
}

/// To a thousandth of a ns: nothing is known as well as that.
double rounded(double ns) { return std::round(ns * 1000) / 1000; }

std::string table_text(const SizeTable& table) {
  if (table.points().empty()) return "0";
  if (table.points().size() == 1) return fmt::format("{}", rounded(table.points().front().ns));
  std::vector<std::string> points;
  for (const SizeTable::Point& point : table.points())
    points.push_back(fmt::format("[{}, {}]", point.bytes, rounded(point.ns)));
  return fmt::format("[{}]", fmt::join(points, ", "));
}

std::string link_text(std::string_view title, const LinkCosts& link) {
  return fmt::format("\n[{}]\nlatency = {}\nsend = {}\nreceive = {}\nwire = {}\n", title, rounded(link.latency),
                     table_text(link.send), table_text(link.receive), table_text(link.wire));
}

}  // namespace

Result<Machine> machine_from_toml(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const toml::table root, parse_toml(text));
  Machine machine{.has_near = false, .has_far = false};
  for (const auto& [key, value] : root) TUTTI_RETURN_IF_ERROR(read_key(key.str(), value, machine));
  for (const std::string_view needed : {"name", "ranks_per_node"}) {
    if (!root.contains(needed)) return error(Code::invalid_argument, "it has no `{} = ...`", needed);
  }
  if (!root.contains("node")) return error(Code::invalid_argument, "it has no table [node]");
  if (!machine.has_near && !machine.has_far)
    return error(Code::invalid_argument, "it has neither a table [near] nor a table [far]");
  if (root.contains("cache") != root.contains("ranks_per_cache")) {
    return error(Code::invalid_argument, "it has one of `ranks_per_cache = ...` and [cache]: write both or none");
  }
  if (machine.ranks_per_cache > machine.ranks_per_node) {
    return at_line(*root.get("ranks_per_cache"), "'ranks_per_cache' is {}, and a node has {} ranks: did you mean {}?",
                   machine.ranks_per_cache, machine.ranks_per_node, machine.ranks_per_node);
  }
  if (machine.rails > machine.ranks_per_node) {
    return at_line(*root.get("rails"), "'rails' is {}, and a node has {} ranks: did you mean {}?", machine.rails,
                   machine.ranks_per_node, machine.ranks_per_node);
  }
  if (const toml::node* const faults = root.get("fault"); faults != nullptr)
    TUTTI_RETURN_IF_ERROR(read_faults(*faults, machine));
  return machine;
}

std::string machine_toml(const Machine& machine) {
  const Model& model = machine.model;
  std::string text = fmt::format("name = \"{}\"\nranks_per_node = {}\n", machine.name, machine.ranks_per_node);
  if (machine.ranks_per_cache > 0) text += fmt::format("ranks_per_cache = {}\n", machine.ranks_per_cache);
  if (machine.rails > 0) text += fmt::format("rails = {}\n", machine.rails);
  if (machine.has_near) text += link_text("near", model.near);
  if (machine.has_far) {
    text += link_text("far", model.far) + fmt::format("gap = {}\n", rounded(model.far.gap));
    if (std::isfinite(model.eager_bytes))
      text += fmt::format("eager = {}\nhandshake = {}\n", model.eager_bytes, model.handshake);
  }
  const auto look_text = [](double look) {
    return look > 0 ? fmt::format("look = {}\n", rounded(look)) : std::string();
  };
  text += fmt::format("\n[node]\nflag = {}\n{}reduce = {}\ncopy = {}\nread = {}\n", rounded(model.flag),
                      look_text(model.look), table_text(model.reduce), table_text(model.copy), table_text(model.read));
  if (machine.ranks_per_cache > 0) {
    text += fmt::format("\n[cache]\nflag = {}\n{}read = {}\n", rounded(model.cache.flag), look_text(model.cache.look),
                        table_text(model.cache.read));
  }
  return text + network_toml(machine);
}

}  // namespace tutti::harness::simulate
