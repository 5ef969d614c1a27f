// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/host_list.h"

#include <algorithm>
#include <cctype>

#include "impl/types/number.h"

namespace tutti::harness::cases {
namespace {

constexpr int kMostSlots = 1024;
constexpr std::string_view kBlanks = " \t\r";

Result<NamedHost> host_of(std::string_view name, std::string_view slots) {
  // An agent's own shell reads the name, and an agent takes what begins with a dash for an option of its own.
  const auto is_odd = [](char c) {
    return !(std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view(".-_@[]:").find(c) != std::string_view::npos);
  };
  if (name.empty() || name.front() == '-' || std::ranges::any_of(name, is_odd)) {
    return error(Code::invalid_argument, "'{}' is no name of a host: letters, digits and . - _ @ are, as in a:2,b:2",
                 name);
  }
  NamedHost host{.name = std::string(name)};
  if (slots.empty()) return host;
  TUTTI_ASSIGN_OR_RETURN(host.slots,
                         parse_number(slots, fmt::format("a number of slots of host '{}'", name), 1, kMostSlots));
  return host;
}

/// The same name twice is one host.
void add(std::vector<NamedHost>& hosts, NamedHost host) {
  const auto same = std::ranges::find(hosts, host.name, &NamedHost::name);
  if (same == hosts.end()) {
    hosts.push_back(std::move(host));
  } else {
    same->slots += host.slots;
  }
}

}  // namespace

Result<std::vector<NamedHost>> parse_hosts(std::string_view text) {
  std::vector<NamedHost> hosts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = one.ends_with(']') ? std::string_view::npos : one.rfind(':');
    const bool has_slots = colon != std::string_view::npos;
    if (has_slots && colon + 1 == one.size()) {
      return error(Code::invalid_argument, "'{}': a number of slots comes after the colon, as in a:2,b:2", one);
    }
    TUTTI_ASSIGN_OR_RETURN(NamedHost host,
                           host_of(one.substr(0, colon), has_slots ? one.substr(colon + 1) : std::string_view()));
    add(hosts, std::move(host));
  }
  return hosts;
}

Result<std::vector<NamedHost>> parse_hostfile(std::string_view text) {
  std::vector<NamedHost> hosts;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    for (std::size_t from = line.find_first_not_of(kBlanks); from != std::string_view::npos;) {
      const std::size_t to = std::min(line.find_first_of(kBlanks, from), line.size());
      words.push_back(line.substr(from, to - from));
      from = line.find_first_not_of(kBlanks, to);
    }
    if (words.empty()) continue;
    if (words.size() > 2) {
      return error(Code::invalid_argument, "line {}: '{}' has {} words: a name and a number of slots", number, line,
                   words.size());
    }
    std::string_view slots = words.size() == 2 ? words[1] : std::string_view();
    if (slots.starts_with("slots=")) slots.remove_prefix(std::string_view("slots=").size());
    auto host = host_of(words[0], slots);
    if (!host.is_ok()) return error(host.status().code(), "line {}: {}", number, host.status().message());
    add(hosts, std::move(host).value());
  }
  if (hosts.empty()) return error(Code::invalid_argument, "no line names a host");
  return hosts;
}

std::string to_text(const std::vector<NamedHost>& hosts) {
  std::string text;
  for (const NamedHost& host : hosts) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

int slots_of(const std::vector<NamedHost>& hosts) {
  int slots = 0;
  for (const NamedHost& host : hosts) slots += host.slots;
  return slots;
}

Hosts dealt_to(const std::vector<NamedHost>& hosts, int ranks) {
  TUTTI_ASSERT(ranks >= 1 && ranks <= slots_of(hosts), "{} ranks on {}", ranks, to_text(hosts));
  std::vector<int> shares(hosts.size());
  for (int left = ranks; left > 0;) {
    for (std::size_t host = 0; host < hosts.size() && left > 0; ++host) {
      if (shares[host] == hosts[host].slots) continue;
      ++shares[host];
      --left;
    }
  }
  std::vector<int> host_of;
  int number = 0;
  for (const int share : shares) {
    if (share == 0) continue;  // only hosts at the end: each has a slot
    host_of.insert(host_of.end(), static_cast<std::size_t>(share), number++);
  }
  return Hosts(std::move(host_of));
}

}  // namespace tutti::harness::cases
