// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/process/agent.h"
#include "impl/bootstrap/init.h"
#include "impl/types/host_list.h"
#include "impl/types/host_name.h"
#include "suites/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

/// A program on a command line cannot take it for anything but a host.
void check_name(std::string_view name, std::string_view input) {
  const auto is_allowed = [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_letter || std::string_view("-._@:%").find(c) != std::string_view::npos;
  };
  TUTTI_ASSERT(!name.empty() && name.front() != '-' && std::ranges::all_of(name, is_allowed), "'{}' of '{}'", name,
               input);
}

void hosts_of(const Result<std::vector<NamedHost>>& hosts, std::string_view input) {
  if (!hosts.is_ok()) return check_message(hosts.status());
  TUTTI_ASSERT(!hosts.value().empty() && hosts.value().size() <= kMostHosts, "{} hosts", hosts.value().size());
  for (const NamedHost& host : hosts.value()) {
    TUTTI_ASSERT(host.slots >= 1 && host.slots <= kMostSlots, "{} slots", host.slots);
    const auto words = harness::process::agent_words("agent", host.name);
    TUTTI_ASSERT(words.is_ok() && words.value().size() == 2, "no agent takes '{}'", host.name);
    check_name(words.value().back(), input);
  }
  const std::string again = to_text(hosts.value());
  const auto same = parse_hosts(again);
  TUTTI_ASSERT(same.is_ok() && same.value() == hosts.value(), "'{}' is printed as '{}'", input, again);
}

void meeting_of(std::string_view url, const char* variable, std::string_view value) {
  const auto init = init_from(url, [&](const std::string& name) -> std::optional<std::string> {
    if (name == variable) return std::string(value);
    if (name == "MASTER_PORT" || name == "SLURM_JOB_ID" || name == "SLURM_STEP_ID") return "29500";
    return std::nullopt;
  });
  if (!init.is_ok()) return check_message(init.status());
  TUTTI_ASSERT(init.value().port >= 1 && init.value().port <= kMostPort, "port {}", init.value().port);
  check_name(init.value().host, value);
}

}  // namespace

void hosts(std::string_view input) {
  hosts_of(parse_hosts(input), input);
  hosts_of(parse_hostfile(input), input);
  if (const auto nodes = parse_nodelist(input); nodes.is_ok()) {
    for (const std::string& node : nodes.value()) check_name(node, input);
  } else {
    check_message(nodes.status());
  }
  if (const auto tasks = parse_tasks_per_node(input); tasks.is_ok()) {
    TUTTI_ASSERT(tasks.value().size() <= kMostHosts && std::ranges::min(tasks.value()) >= 1, "tasks of '{}'", input);
  } else {
    check_message(tasks.status());
  }
  meeting_of(fmt::format("tcp://{}", input), "", input);
  for (const char* const variable : {"MASTER_ADDR", "SLURM_STEP_NODELIST"}) meeting_of("env://", variable, input);
  TUTTI_ASSERT(parse_host_name(plain_host_name(input)).is_ok(), "what a machine calls itself: '{}'", input);
  static_cast<void>(check_interface(input));
}

}  // namespace tutti::fuzz
