// SPDX-License-Identifier: Apache-2.0
#include "harness/simulate/network_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/text/number.h"
#include "impl/types/names.h"

namespace tutti::harness::simulate {
namespace {

constexpr std::int64_t kMostNodes = 100'000;

struct ShapeName {
  Shape shape;
  std::string_view name;
  std::string_view keys;  ///< that it has besides those of all
};
constexpr std::array kShapes{
    ShapeName{Shape::one_switch, "switch", " nodes "}, ShapeName{Shape::fat_tree, "fat-tree", " nodes leaf taper hop "},
    ShapeName{Shape::dragonfly, "dragonfly", " nodes leaf links hop "},
    ShapeName{Shape::rails, "rails", " nodes leaf taper hop "}, ShapeName{Shape::torus, "torus", " sides hop "}};

struct PlacingName {
  Placing placing;
  std::string_view name;
};
constexpr std::array kPlacings{PlacingName{Placing::contiguous, "contiguous"}, PlacingName{Placing::strided, "strided"},
                               PlacingName{Placing::random, "random"}};

struct PartName {
  SlowPart part;
  std::string_view name;
  std::string_view place;  ///< the key that says where
};
constexpr std::array kParts{
    PartName{SlowPart::node, "node", "node"},       PartName{SlowPart::nic, "nic", "node"},
    PartName{SlowPart::nic_out, "nic-out", "node"}, PartName{SlowPart::nic_in, "nic-in", "node"},
    PartName{SlowPart::link, "link", "nodes"},      PartName{SlowPart::link_out, "link-dir", "nodes"},
    PartName{SlowPart::uplink, "uplink", "leaf"},   PartName{SlowPart::uplink_out, "uplink-dir", "leaf"},
    PartName{SlowPart::rail, "rail", "rail"}};

/// The row of a table that has the text's name.
template <class Rows>
Result<const typename Rows::value_type*> row_named(const toml::node& node, std::string_view key, const Rows& rows) {
  const auto* const text = node.as_string();
  if (text == nullptr) return wrong_toml_type(node, key, "a text");
  std::vector<std::string> names;
  for (const auto& row : rows) {
    if (row.name == text->get()) return &row;
    names.emplace_back(row.name);
  }
  return at_line(node, "{}", unknown_name(key, text->get(), names).message());
}

Result<std::int64_t> whole(const toml::node& node, std::string_view key, std::int64_t least, std::int64_t most) {
  const auto* const number = node.as_integer();
  if (number == nullptr) return wrong_toml_type(node, key, "a whole number");
  if (number->get() >= least && number->get() <= most) return number->get();
  return at_line(node, "'{}' is {}: allowed are {} to {}: did you mean {}?", key, number->get(), least, most,
                 std::clamp(number->get(), least, most));
}

Status read_real(const toml::node& node, std::string_view key, double least, double most, double& to) {
  const std::optional<double> number = node.value<double>();
  if (!number || !node.is_number()) return wrong_toml_type(node, key, "a number");
  if (!(*number >= least && *number <= most)) {
    return at_line(node, "'{}' is {}: allowed are {:g} to {:g}: did you mean {:g}?", key, *number, least, most,
                   *number > most ? most : least);
  }
  to = *number;
  return {};
}

Status read_sides(const toml::node& node, Network& network) {
  const toml::array* const sides = node.as_array();
  constexpr std::size_t kMostSides = 4;
  if (sides == nullptr || sides->empty() || sides->size() > kMostSides)
    return wrong_toml_type(node, "sides", "a list of 1 to 4 whole numbers, such as [8, 8]");
  std::int64_t nodes = 1;
  for (const toml::node& one : *sides) {
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t side, whole(one, "sides", 1, kMostNodes));
    network.sides.push_back(static_cast<int>(side));
    nodes *= side;
    if (nodes > kMostNodes) return at_line(node, "'sides' make more than {} nodes", kMostNodes);
  }
  network.nodes = static_cast<int>(nodes);
  return {};
}

Status read_network_key(std::string_view key, const toml::node& node, Network& network) {
  constexpr double kMostTimes = 1000, kMostHop = 1e9;
  if (key == "nodes" || key == "leaf") {
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t number, whole(node, key, 1, kMostNodes));
    (key == "leaf" ? network.leaf : network.nodes) = static_cast<int>(number);
    return {};
  }
  if (key == "taper") return read_real(node, key, 1 / kMostTimes, kMostTimes, network.taper);
  if (key == "links") return read_real(node, key, 1 / kMostTimes, kMostNodes, network.links);
  if (key == "hop") return read_real(node, key, 0, kMostHop, network.hop);
  if (key == "sides") return read_sides(node, network);
  if (key == "seed") {
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t seed, whole(node, key, 0, std::int64_t{1} << 62U));
    network.seed = static_cast<std::uint64_t>(seed);
    return {};
  }
  TUTTI_ASSIGN_OR_RETURN(const PlacingName* const placing, row_named(node, key, kPlacings));
  network.placing = placing->placing;
  return {};
}

Result<int> node_of_name(const toml::node& node, const Network& network) {
  constexpr std::string_view kPrefix = "node";
  const std::int64_t most = network.nodes > 0 ? network.nodes : kMostNodes;
  const auto* const text = node.as_string();
  if (text == nullptr) return wrong_toml_type(node, "node", "a text, such as \"node1\"");
  const std::string_view name = text->get();
  const auto number = name.starts_with(kPrefix) ? text::number_in<std::int64_t>(name.substr(kPrefix.size()))
                                                : std::optional<std::int64_t>();
  if (number && *number >= 1 && *number <= most) return static_cast<int>(*number - 1);
  return at_line(node, "'{}' is no node: allowed are node1 to node{}: did you mean 'node{}'?", shown(name), most,
                 number ? std::clamp<std::int64_t>(*number, 1, most) : 1);
}

Status read_place(std::string_view key, const toml::node& node, const Machine& machine, SlowFault& fault) {
  const Network& network = machine.network;
  if (key == "node") {
    TUTTI_ASSIGN_OR_RETURN(fault.first, node_of_name(node, network));
    return {};
  }
  if (key == "nodes") {
    const toml::array* const both = node.as_array();
    if (both == nullptr || both->size() != 2) return wrong_toml_type(node, key, "two nodes: [\"node1\", \"node2\"]");
    TUTTI_ASSIGN_OR_RETURN(fault.first, node_of_name(*both->get(0), network));
    TUTTI_ASSIGN_OR_RETURN(fault.second, node_of_name(*both->get(1), network));
    if (fault.first == fault.second) return at_line(node, "'nodes' names one node twice");
    return {};
  }
  if (key == "rail") {
    const int rails = machine.rails > 0 ? machine.rails : machine.ranks_per_node;
    TUTTI_ASSIGN_OR_RETURN(const std::int64_t rail, whole(node, key, 0, rails - 1));
    fault.first = static_cast<int>(rail);
    return {};
  }
  const auto* const text = node.as_string();
  const std::int64_t leaves = (network.nodes > 0 ? network.nodes + network.leaf - 1 : kMostNodes) / network.leaf;
  for (int leaf = 0; text != nullptr && leaf < leaves; ++leaf) {
    if (leaf_text(leaf) != text->get()) continue;
    fault.first = leaf;
    return {};
  }
  if (text == nullptr) return wrong_toml_type(node, key, "a text, such as \"A\"");
  return at_line(node, "'{}' is no leaf: allowed are '{}' to '{}': did you mean '{}'?", shown(text->get()),
                 leaf_text(0), leaf_text(static_cast<int>(leaves) - 1), leaf_text(0));
}

/// "31%" as 0.31.
Status read_share(const toml::node& node, double& share) {
  const auto* const text = node.as_string();
  std::string_view digits = text == nullptr ? std::string_view() : std::string_view(text->get());
  if (!digits.ends_with('%')) return wrong_toml_type(node, "share", "a share, such as \"10%\"");
  digits.remove_suffix(1);
  constexpr double kMost = 99;
  const std::optional<double> percent = text::number_in<double>(digits);
  if (!percent || *percent < 0 || *percent > kMost) {
    return at_line(node, "'share' is '{}': allowed are 0% to {:g}%: did you mean '{:g}%'?", shown(text->get()), kMost,
                   percent ? std::clamp(*percent, 0.0, kMost) : 10);
  }
  share = *percent / 100;
  return {};
}

Status read_fault(const toml::node& node, Machine& machine) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "fault", "tables: [[fault]]");
  const toml::node* const what = table->get("what");
  if (what == nullptr) return at_line(node, "a fault needs `what = \"nic-out\"`");
  TUTTI_ASSIGN_OR_RETURN(const PartName* const part, row_named(*what, "what", kParts));
  const bool is_uplink = part->place == "leaf";
  if (is_uplink && machine.network.shape != Shape::fat_tree && machine.network.shape != Shape::rails)
    return at_line(*what, "\"{}\" needs a [network] whose shape is \"fat-tree\" or \"rails\"", part->name);
  SlowFault fault{.part = part->part};
  for (const auto& [key, value] : *table) {
    if (key.str() == "what") continue;
    if (key.str() == part->place) {
      TUTTI_RETURN_IF_ERROR(read_place(part->place, value, machine, fault));
    } else if (key.str() == "share") {
      TUTTI_RETURN_IF_ERROR(read_share(value, fault.share));
    } else {
      const std::vector<std::string> keys{"what", std::string(part->place), "share"};
      return at_line(value, "{}", unknown_name("key", key.str(), keys).message());
    }
  }
  for (const std::string_view needed : {part->place, std::string_view("share")}) {
    if (!table->contains(needed)) return at_line(node, "\"{}\" needs `{} = ...`", part->name, needed);
  }
  machine.faults.push_back(fault);
  return {};
}

}  // namespace

Status read_network(const toml::node& node, Network& network) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "network", "a table: [network]");
  const toml::node* const named = table->get("shape");
  if (named == nullptr) return at_line(node, "[network] needs `shape = \"fat-tree\"`");
  TUTTI_ASSIGN_OR_RETURN(const ShapeName* const shape, row_named(*named, "shape", kShapes));
  network.shape = shape->shape;
  for (const auto& [key, value] : *table) {
    if (key.str() == "shape") continue;
    const std::string of_all = fmt::format("{}placement seed ", shape->keys);
    if (of_all.find(fmt::format(" {} ", key.str())) == std::string::npos) {
      std::vector<std::string> keys{"shape"};
      for (std::size_t at = 1; at < of_all.size();) {
        const std::size_t end = of_all.find(' ', at);
        keys.push_back(of_all.substr(at, end - at));
        at = end + 1;
      }
      return at_line(value, "{}", unknown_name(fmt::format("key of a {}", shape->name), key.str(), keys).message());
    }
    TUTTI_RETURN_IF_ERROR(read_network_key(key.str(), value, network));
  }
  if (network.has_leaves() && network.leaf == 0) return at_line(node, "\"{}\" needs `leaf = ...`", shape->name);
  if (network.shape == Shape::torus && network.sides.empty()) return at_line(node, "\"torus\" needs `sides = [8, 8]`");
  if (network.placing == Placing::strided && !network.has_leaves())
    return at_line(node, "'placement' is strided over leaves, and a {} has none", shape->name);
  return {};
}

Status read_faults(const toml::node& node, Machine& machine) {
  const toml::array* const tables = node.as_array();
  if (tables == nullptr) return wrong_toml_type(node, "fault", "tables: [[fault]]");
  for (const toml::node& one : *tables) TUTTI_RETURN_IF_ERROR(read_fault(one, machine));
  return {};
}

std::string network_toml(const Machine& machine) {
  const Network& network = machine.network;
  std::string text;
  const bool is_plain =
      network.shape == Shape::one_switch && network.placing == Placing::contiguous && network.nodes == 0;
  if (!is_plain) {
    const auto* const shape = std::ranges::find(kShapes, network.shape, &ShapeName::shape);
    text = fmt::format("\n[network]\nshape = \"{}\"\n", shape->name);
    const auto has = [&](std::string_view key) {
      return shape->keys.find(fmt::format(" {} ", key)) != std::string::npos;
    };
    if (has("nodes") && network.nodes > 0) text += fmt::format("nodes = {}\n", network.nodes);
    if (has("sides")) text += fmt::format("sides = [{}]\n", fmt::join(network.sides, ", "));
    if (has("leaf")) text += fmt::format("leaf = {}\n", network.leaf);
    if (has("taper")) text += fmt::format("taper = {}\n", network.taper);
    if (has("links")) text += fmt::format("links = {}\n", network.links);
    if (has("hop")) text += fmt::format("hop = {}\n", network.hop);
    text += fmt::format("placement = \"{}\"\nseed = {}\n",
                        std::ranges::find(kPlacings, network.placing, &PlacingName::placing)->name, network.seed);
  }
  for (const SlowFault& fault : machine.faults) {
    const auto* const part = std::ranges::find(kParts, fault.part, &PartName::part);
    std::string place = fmt::format("\"{}\"", node_text(fault.first));
    if (part->place == "nodes")
      place = fmt::format("[\"{}\", \"{}\"]", node_text(fault.first), node_text(fault.second));
    if (part->place == "leaf") place = fmt::format("\"{}\"", leaf_text(fault.first));
    if (part->place == "rail") place = fmt::format("{}", fault.first);
    text += fmt::format("\n[[fault]]\nwhat = \"{}\"\n{} = {}\nshare = \"{:g}%\"\n", part->name, part->place, place,
                        100 * fault.share);
  }
  return text;
}

}  // namespace tutti::harness::simulate
