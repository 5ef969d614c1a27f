// SPDX-License-Identifier: Apache-2.0
#include "harness/accept/cluster_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/accept/rails.h"
#include "harness/accept/report.h"
#include "harness/accept/toml_fields.h"
#include "harness/text/number.h"
#include "harness/text/toml.h"
#include "impl/types/names.h"

namespace tutti::harness::accept {
namespace {

constexpr ShareRange kShares{.least = 0, .most = 0.99, .usual = 0.1};

struct TroubleName {
  Trouble trouble;
  std::string_view name;
};
constexpr std::array kTroubles{TroubleName{Trouble::node, "node"},
                               TroubleName{Trouble::nic, "nic"},
                               TroubleName{Trouble::nic_out, "nic-out"},
                               TroubleName{Trouble::nic_in, "nic-in"},
                               TroubleName{Trouble::link, "link"},
                               TroubleName{Trouble::link_out, "link-dir"},
                               TroubleName{Trouble::fast, "too-fast"},
                               TroubleName{Trouble::uplink, "uplink"},
                               TroubleName{Trouble::uplink_out, "uplink-dir"},
                               TroubleName{Trouble::jam, "jam"},
                               TroubleName{Trouble::fleet, "fleet"},
                               TroubleName{Trouble::unsteady, "unsteady"},
                               TroubleName{Trouble::wrong, "wrong"},
                               TroubleName{Trouble::hung, "hung"},
                               TroubleName{Trouble::dead, "dead"},
                               TroubleName{Trouble::crowd, "crowd"},
                               TroubleName{Trouble::absent, "absent"}};

/// A part that a fault names.
struct Place {
  int first = 0, second = 0;
};

Result<int> node_named(const toml::node& node, std::string_view name, int nodes) {
  constexpr std::string_view kPrefix = "node";
  const std::optional<int> number =
      name.starts_with(kPrefix) ? text::number_in<int>(name.substr(kPrefix.size())) : std::nullopt;
  if (number && *number >= 1 && *number <= nodes) return *number - 1;
  return at_line(node, "'{}' is no node: allowed are node1 to node{}: did you mean 'node{}'?", shown(name), nodes,
                 number ? std::clamp(*number, 1, nodes) : 1);
}

Result<int> leaf_named(const toml::node& node, std::string_view name, int leaves) {
  for (int leaf = 0; leaf < leaves; ++leaf) {
    if (leaf_name(leaf) == name) return leaf;
  }
  return at_line(node, "'{}' is no leaf: allowed are '{}' to '{}': did you mean '{}'?", shown(name), leaf_name(0),
                 leaf_name(leaves - 1), leaf_name(0));
}

template <class Named>
Result<Place> place_in(const toml::node& node, std::string_view key, int count, const Named& named) {
  std::vector<int> parts;
  if (const auto* items = node.as_array(); items != nullptr) {
    for (const toml::node& item : *items) {
      TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(item, key));
      TUTTI_ASSIGN_OR_RETURN(const int part, named(item, name, count));
      parts.push_back(part);
    }
    if (parts.size() != 2 || parts[0] == parts[1]) return at_line(node, "'{}' names two that differ", key);
    return Place{.first = parts[0], .second = parts[1]};
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(node, key));
  TUTTI_ASSIGN_OR_RETURN(const int part, named(node, name, count));
  return Place{.first = part, .second = part};
}

Result<Trouble> trouble_named(const toml::node& node, std::string_view name) {
  std::vector<std::string> names;
  for (const TroubleName& row : kTroubles) {
    if (row.name == name) return row.trouble;
    names.emplace_back(row.name);
  }
  const Status unknown = unknown_name("fault", name, names);
  return at_line(node, "{}", unknown.message());
}

/// The key that says where a trouble is.
std::string_view key_of(Trouble trouble) {
  if (trouble == Trouble::fleet) return {};
  if (hits_leaves(trouble)) return hits_two(trouble) ? "leaves" : "leaf";
  return hits_two(trouble) ? "nodes" : "node";
}

Result<Fault> fault_of(const toml::node& node, const PretendedCluster& cluster) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return wrong_toml_type(node, "fault", "tables: [[fault]]");
  const toml::node* const what = table->get("what");
  if (what == nullptr) return at_line(node, "a fault needs `what = \"nic-out\"`");
  TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(*what, "what"));
  Fault fault;
  TUTTI_ASSIGN_OR_RETURN(fault.trouble, trouble_named(*what, name));
  const std::string_view place_key = key_of(fault.trouble);
  bool has_place = place_key.empty(), has_its_share = !has_share(fault.trouble);
  for (const auto& [key, value] : *table) {
    if (key.str() == "what") continue;
    if (key.str() == place_key) {
      const int leaves = (cluster.nodes + cluster.leaf_size - 1) / cluster.leaf_size;
      TUTTI_ASSIGN_OR_RETURN(const Place place, hits_leaves(fault.trouble)
                                                    ? place_in(value, place_key, leaves, leaf_named)
                                                    : place_in(value, place_key, cluster.nodes, node_named));
      const bool is_pair = value.is_array();
      if (is_pair != hits_two(fault.trouble)) {
        return at_line(value, "'{}' of \"{}\" names {}", place_key, name,
                       is_pair ? "one" : "two: [\"node1\", \"node2\"]");
      }
      fault.first = place.first;
      fault.second = place.second;
      has_place = true;
    } else if (key.str() == "share" && has_share(fault.trouble)) {
      TUTTI_RETURN_IF_ERROR(set_share(value, "share", kShares, fault.share));
      has_its_share = true;
    } else if (key.str() == "of_library" && !cluster.library.empty()) {
      TUTTI_ASSIGN_OR_RETURN(fault.is_of_library, flag_of(value, "of_library"));
    } else if (key.str() == "rail" && !cluster.rails.empty()) {
      TUTTI_ASSIGN_OR_RETURN(const std::string rail, text_of(value, "rail"));
      const auto found = std::ranges::find(cluster.rails, rail);
      if (found == cluster.rails.end())
        return at_line(value, "{}", unknown_name("rail", rail, cluster.rails).message());
      fault.rail = static_cast<int>(found - cluster.rails.begin());
    } else {
      std::vector<std::string> keys{"what"};
      if (!place_key.empty()) keys.emplace_back(place_key);
      if (has_share(fault.trouble)) keys.emplace_back("share");
      if (!cluster.rails.empty()) keys.emplace_back("rail");
      if (!cluster.library.empty()) keys.emplace_back("of_library");
      return at_line(value, "{}", unknown_name("key", key.str(), keys).message());
    }
  }
  if (!has_place) return at_line(node, "\"{}\" needs `{} = ...`", name, place_key);
  if (!has_its_share) return at_line(node, "\"{}\" needs `share = \"10%\"`", name);
  return fault;
}

Status set_noise(const toml::node& node, Noise& noise) {
  TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(node, "noise"));
  std::vector<std::string> names;
  for (const NamedNoise& row : noises()) {
    if (row.name == name) {
      noise = row.noise;
      return {};
    }
    names.emplace_back(row.name);
  }
  return at_line(node, "{}", unknown_name("noise", name, names).message());
}

Status set_rails(const toml::node& node, std::vector<std::string>& rails) {
  const toml::array* const items = node.as_array();
  if (items == nullptr) return wrong_toml_type(node, "rails", "names: [\"ib0\", \"ib1\"]");
  for (const toml::node& item : *items) {
    TUTTI_ASSIGN_OR_RETURN(const std::string name, text_of(item, "rails"));
    TUTTI_RETURN_IF_ERROR(check_rail(name));
    if (std::ranges::find(rails, name) != rails.end()) return at_line(item, "rail '{}' is there twice", name);
    rails.push_back(name);
  }
  if (rails.empty() || rails.size() > kMostRails) {
    return at_line(node, "'rails' has {} names: allowed are 1 to {}", rails.size(), kMostRails);
  }
  return {};
}

Status set_key(std::string_view key, const toml::node& node, PretendedCluster& cluster) {
  std::int64_t number = 0;
  if (key == "nodes") {
    TUTTI_RETURN_IF_ERROR(set_number(node, key, 1, kMostNodes, number));
    cluster.nodes = static_cast<int>(number);
  } else if (key == "leaf") {
    TUTTI_RETURN_IF_ERROR(set_number(node, key, 1, kMostNodes, number));
    cluster.leaf_size = static_cast<int>(number);
  } else if (key == "tells_leaves") {
    TUTTI_ASSIGN_OR_RETURN(cluster.tells_leaves, flag_of(node, key));
  } else if (key == "seed") {
    TUTTI_RETURN_IF_ERROR(set_number(node, key, 0, std::int64_t{1} << 62, number));
    cluster.seed = static_cast<std::uint64_t>(number);
  } else if (key == "noise") {
    return set_noise(node, cluster.noise);
  } else if (key == "older") {
    return set_share(node, key, kShares, cluster.generation);
  } else if (key == "older_by") {
    return set_share(node, key, kShares, cluster.generation_cost);
  } else if (key == "library") {
    TUTTI_ASSIGN_OR_RETURN(cluster.library, text_of(node, key));
  } else if (key == "rails") {
    return set_rails(node, cluster.rails);
  } else if (key != "fault") {
    const std::vector<std::string> keys{"nodes",    "leaf",  "seed",    "noise",        "older",
                                        "older_by", "rails", "library", "tells_leaves", "fault"};
    return at_line(node, "{}", unknown_name("key", key, keys).message());
  }
  return {};
}

}  // namespace

Result<PretendedCluster> cluster_from_toml(std::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const toml::table root, parse_toml(text));
  PretendedCluster cluster;
  for (const auto& [key, value] : root) TUTTI_RETURN_IF_ERROR(set_key(key.str(), value, cluster));
  cluster.leaf_size = std::min(cluster.leaf_size, cluster.nodes);
  const toml::node* const faults = root.get("fault");
  if (faults == nullptr) return cluster;
  const toml::array* tables = faults->as_array();
  if (tables == nullptr) return wrong_toml_type(*faults, "fault", "tables: [[fault]]");
  for (const toml::node& one : *tables) {
    TUTTI_ASSIGN_OR_RETURN(const Fault fault, fault_of(one, cluster));
    cluster.faults.push_back(fault);
  }
  return cluster;
}

}  // namespace tutti::harness::accept
