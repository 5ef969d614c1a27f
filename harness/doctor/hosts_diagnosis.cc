// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/hosts_diagnosis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/doctor/diagnosis.h"
#include "harness/text/counted.h"
#include "harness/text/json_reader.h"
#include "harness/text/json_writer.h"
#include "harness/text/text.h"

namespace tutti::harness::doctor {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr std::string_view kBuild = "build";
constexpr std::string_view kNotKnown = "unknown";
constexpr double kMostApartNs = 10e6;  // clocks that are set over the network are within some ms
constexpr double kSlowLogin = 3;       // s
constexpr std::size_t kMostNames = 6;

/// What it means that hosts differ in a fact. The rows of references have none of their own.
struct Meaning {
  std::string_view fact;
  Severity severity;
  std::string_view why;
  std::string_view advice;
};
constexpr std::string_view kSlowest = "all ranks wait for the slowest: its host decides the time of all";
constexpr std::array kMeanings{
    Meaning{kBuild, Severity::blocks, "all machines of a job need one build: another is refused",
            "install the same build at the same path on each"},
    Meaning{"processor", Severity::spoils, kSlowest, "measure on hosts alike"},
    Meaning{"cores", Severity::note, "as many ranks have a core each on one host, and share cores on another",
            "--hosts a:N gives each host as many ranks as it has cores"},
    Meaning{"memory", Severity::note, "sizes that fit one host may be skipped because of another", "smaller --sizes"},
    Meaning{"kernel", Severity::note, "the network and the scheduler differ with it", "the same kernel on each"},
    Meaning{"governor", Severity::spoils, kSlowest, "cpupower frequency-set -g performance, on each"},
    Meaning{"turbo", Severity::spoils, kSlowest, "turn it on, or off, on all of them"},
    Meaning{"clock source", Severity::spoils, "reading the time takes longer on one of them",
            "boot with clocksource=tsc, where the processor has an invariant one"},
    Meaning{"huge pages", Severity::note, "large buffers lie on many small pages on one of them",
            "the same in /sys/kernel/mm/transparent_hugepage/enabled on each"},
    Meaning{"interface", Severity::note, "it may be another network, or only another name",
            "--interface names the one to use"},
    Meaning{"MTU", Severity::spoils,
            "packets that are too long for one of them are cut in pieces, or lost: then a connection is made and "
            "nothing large comes through",
            "ip link set dev NAME mtu BYTES, the same on each and on the switch"},
    Meaning{"link speed in Mbit/s", Severity::spoils, "all ranks wait for the slowest link",
            "look at the cable and the port of the slower one: ethtool NAME"},
};
constexpr Meaning kReference{"", Severity::spoils,
                             "its ranks are of two versions, which may not understand each other, or cannot start",
                             "install the same on each, and build its backend there (scripts/build-backend)"};

const Meaning& meaning_of(std::string_view fact) {
  const auto known = std::ranges::find(kMeanings, fact, &Meaning::fact);
  return known == kMeanings.end() ? kReference : *known;
}

/// A word that scripts may rely on.
std::string word_of(std::string_view fact) {
  std::string word;
  for (const char c : fact.substr(0, fact.find(" in "))) {
    word += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

/// "a", "a and b"; of many the first ones.
std::string some(Names names) {
  if (names.size() > kMostNames) {
    const std::size_t more = names.size() - (kMostNames - 1);
    names.resize(kMostNames - 1);
    names.push_back(fmt::format("{} more", more));
  }
  return joined(names);
}

std::string_view or_not_known(std::string_view text) { return text.empty() ? kNotKnown : text; }

/// Those that have answered.
std::vector<const Visit*> known(std::span<const Visit> visits) {
  std::vector<const Visit*> all;
  for (const Visit& visit : visits) {
    if (visit.failure.is_ok()) all.push_back(&visit);
  }
  return all;
}

std::string value_of(const Visit& visit, std::string_view fact) {
  const auto found = std::ranges::find(visit.look.facts, fact, &Fact::name);
  return found == visit.look.facts.end() ? "" : found->value;
}

/// In the order of the first host, then what only others have.
Names facts_in(std::span<const Visit* const> visits) {
  Names names;
  for (const Visit* visit : visits) {
    for (const Fact& fact : visit->look.facts) {
      if (std::ranges::find(names, fact.name) == names.end()) names.push_back(fact.name);
    }
  }
  return names;
}

/// [value] -> the hosts that have it, the most frequent one first.
std::vector<std::pair<std::string, Names>> hosts_by_value(std::span<const Visit* const> visits, std::string_view fact) {
  std::vector<std::pair<std::string, Names>> groups;
  for (const Visit* visit : visits) {
    const std::string value = value_of(*visit, fact);
    auto group = std::ranges::find(groups, value, &std::pair<std::string, Names>::first);
    if (group == groups.end()) group = groups.insert(group, {value, {}});
    group->second.push_back(visit->host);
  }
  std::ranges::stable_sort(groups, std::greater<>(), [](const auto& group) { return group.second.size(); });
  return groups;
}

void look_at_those_not_reached(std::span<const Visit> visits, std::vector<Symptom>& list) {
  for (const Visit& visit : visits) {
    if (visit.failure.is_ok()) continue;
    list.push_back({"unreachable", Severity::blocks,
                    fmt::format("host {} cannot be examined: {}", visit.host, visit.failure.message()),
                    "its ranks are started the same way",
                    "the agent has to run a command there without asking, and tutti has to be there at the same path: "
                    "`ssh HOST true` shows the first, `ssh HOST PATH --version` the second"});
  }
}

void look_at_logins(std::span<const Visit* const> visits, std::vector<Symptom>& list) {
  for (const Visit* visit : visits) {
    if (visit->login_seconds < kSlowLogin) continue;
    list.push_back(
        {"slow_login", Severity::note,
         fmt::format("it took {:.1f} s until something ran on {}", visit->login_seconds, visit->host),
         "each start of a job waits for its slowest host: up to --timeout, and a minute at least",
         "time `ssh HOST true`: mostly it is the lookup of names (UseDNS of sshd), or what a login shell runs"});
  }
}

void look_at_facts(std::span<const Visit* const> visits, std::vector<Symptom>& list) {
  for (const std::string& fact : facts_in(visits)) {
    const auto groups = hosts_by_value(visits, fact);
    if (groups.size() < 2) continue;
    Names parts;
    for (const auto& [value, hosts] : groups)
      parts.push_back(fmt::format("{} on {}", or_not_known(value), some(hosts)));
    const Meaning& meaning = meaning_of(fact);
    list.push_back({word_of(fact), meaning.severity, fmt::format("{} differs: {}", fact, fmt::join(parts, "; ")),
                    std::string(meaning.why), std::string(meaning.advice)});
  }
}

void look_at_machines(std::span<const Visit* const> visits, std::vector<Symptom>& list) {
  std::map<std::string, Names> on;
  for (const Visit* visit : visits) on[visit->look.machine].push_back(visit->host);
  for (const auto& [machine, hosts] : on) {
    if (machine.empty() || hosts.size() < 2) continue;
    list.push_back({"one_machine", Severity::note, fmt::format("{} are one machine", some(hosts)),
                    "their ranks share its cores and its memory, and what lies between them is no network",
                    "name each machine once; as namespaces or containers of one they are good for tests"});
  }
}

std::string milliseconds(double ns) { return fmt::format("{:.3f} ms", ns * 1e-6); }

void look_at_clocks(std::span<const Visit* const> visits, std::vector<Symptom>& list) {
  for (const Visit* visit : visits) {
    if (!visit->clock || std::abs(visit->clock->ahead_ns) < kMostApartNs + visit->clock->bound_ns) continue;
    const double ahead = visit->clock->ahead_ns;
    list.push_back({"clocks", Severity::note,
                    fmt::format("the time of day of {} is {} {} that of {} (known to {})", visit->host,
                                milliseconds(std::abs(ahead)), ahead > 0 ? "ahead of" : "behind", visits.front()->host,
                                milliseconds(visit->clock->bound_ns)),
                    "logs of two hosts do not fit together; tutti itself is not misled, for it estimates their clocks",
                    "have the clocks set over the network: chronyc tracking, timedatectl"});
  }
}

void look_at_routes(std::span<const Visit> visits, std::vector<Symptom>& list) {
  for (const Visit& visit : visits) {
    for (std::size_t other = 0; other < visit.reached.size(); ++other) {
      const Reach& reach = visit.reached[other];
      if (reach.failure.empty()) continue;
      list.push_back({"connection", Severity::blocks,
                      fmt::format("{} does not reach {}: {}", visit.host, visits[other].host, reach.failure),
                      "ranks of two hosts talk over TCP, at ports that the system chooses",
                      "allow these in the firewall, or name another network by --interface"});
    }
  }
}

/// What several hosts have found alike is said once.
void add_own_findings(std::span<const Visit* const> visits, std::vector<Symptom>& list) {
  std::vector<std::pair<Symptom, Names>> all;
  for (const Visit* visit : visits) {
    for (const Symptom& one : visit->look.findings) {
      const auto is_same = [&](const auto& other) {
        return other.first.name == one.name && other.first.what == one.what;
      };
      auto same = std::ranges::find_if(all, is_same);
      if (same == all.end()) same = all.insert(same, {one, {}});
      same->second.push_back(visit->host);
    }
  }
  for (auto& [finding, hosts] : all) {
    const bool is_of_all = hosts.size() == visits.size() && hosts.size() > 1;
    finding.what = fmt::format("on {}: {}", is_of_all ? "all hosts" : some(hosts), finding.what);
    list.push_back(std::move(finding));
  }
}

/// Whom a host reaches, as a cell of the table.
std::string reached_text(const Visit& visit) {
  std::size_t others = 0, missed = 0;
  double slowest = 0;
  for (const Reach& reach : visit.reached) {
    if (reach.from.empty() && reach.failure.empty()) continue;  // itself, or one that has not answered
    ++others;
    missed += reach.failure.empty() ? 0 : 1;
    slowest = std::max(slowest, reach.failure.empty() ? reach.microseconds : 0.0);
  }
  if (others == 0) return "-";
  if (missed > 0) return fmt::format("{} of {}", others - missed, others);
  return fmt::format("all, in {:.0f} us", slowest);
}

std::string clock_text(const Visit& visit, bool is_first) {
  if (!visit.clock) return std::string(kNotKnown);
  if (is_first) return "0";
  return fmt::format("{:+.3f} +- {:.3f}", visit.clock->ahead_ns * 1e-6, visit.clock->bound_ns * 1e-6);
}

using Table = std::vector<Names>;

std::string table_text(const Table& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Names& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Names& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format(" {:<{}} ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

Json clock_json(const std::optional<ClockOffset>& clock) {
  return clock ? Json{{"ahead_ns", clock->ahead_ns}, {"bound_ns", clock->bound_ns}} : Json();
}

Json routes_json(std::span<const Visit> visits, const Visit& visit) {
  Json routes = Json::array();
  for (std::size_t other = 0; other < visit.reached.size(); ++other) {
    const Reach& reach = visit.reached[other];
    if (reach.from.empty() && reach.failure.empty()) continue;
    routes.push_back({{"to", visits[other].host},
                      {"at", visits[other].look.listens},
                      {"from", reach.from},
                      {"interface", reach.interface},
                      {"mtu", reach.mtu == 0 ? Json() : Json(reach.mtu)},
                      {"microseconds", reach.failure.empty() ? Json(reach.microseconds) : Json()},
                      {"failure", reach.failure.empty() ? Json() : Json(reach.failure)}});
  }
  return routes;
}

}  // namespace

std::vector<Fact> facts_of(const MachineCondition& c, const std::string& build, std::span<const Fact> libraries) {
  constexpr int kGibibyte = 30;
  const std::string cores = c.allowed.size() == c.online.size()
                                ? fmt::format("{}", c.online.size())
                                : fmt::format("{} of {}", c.allowed.size(), c.online.size());
  std::vector<Fact> facts{
      {std::string(kBuild), build},
      {"processor", c.cpu_model},
      {"cores", cores},
      {"memory", fmt::format("{:.0f} GiB", std::ldexp(static_cast<double>(c.memory_bytes), -kGibibyte))},
      {"kernel", c.kernel},
      {"governor", c.governor},
      {"turbo", !c.has_turbo   ? ""
                : *c.has_turbo ? "on"
                               : "off"},
      {"clock source", c.clock_source},
      {"huge pages", c.huge_pages}};
  facts.insert(facts.end(), libraries.begin(), libraries.end());
  return facts;
}

std::vector<Symptom> findings_of(std::span<const Visit> visits) {
  std::vector<Symptom> list;
  const std::vector<const Visit*> answered = known(visits);
  look_at_those_not_reached(visits, list);
  look_at_logins(answered, list);
  look_at_facts(answered, list);
  look_at_routes(visits, list);
  look_at_clocks(answered, list);
  look_at_machines(answered, list);
  add_own_findings(answered, list);
  std::ranges::stable_sort(list, {}, &Symptom::severity);
  return list;
}

std::vector<std::string> names_of_differences() {
  Names names;
  for (const Meaning& meaning : kMeanings) names.push_back(word_of(meaning.fact));
  return names;
}

std::vector<Difference> differing_hosts(std::span<const Visit> visits, std::string_view name) {
  const std::vector<const Visit*> answered = known(visits);
  std::vector<Difference> differing;
  for (const std::string& fact : facts_in(answered)) {
    if (word_of(fact) != name) continue;
    const auto groups = hosts_by_value(answered, fact);
    if (2 * groups.front().second.size() <= answered.size()) continue;
    for (std::size_t i = 1; i < groups.size(); ++i) {
      for (const std::string& host : groups[i].second) {
        differing.push_back({host, fmt::format("its {} is {}: most hosts have {}", fact, or_not_known(groups[i].first),
                                               or_not_known(groups.front().first))});
      }
    }
  }
  return differing;
}

std::string diagnosis_text(std::span<const Visit> visits, std::span<const Symptom> findings) {
  const std::vector<const Visit*> answered = known(visits);
  std::string text = fmt::format("{}\n\n", counted(visits.size(), "host"));
  Table rows{{"host", "kernel", "cores", "governor", "clock (ms)", "interface", "MTU", "reaches"}};
  for (const Visit& visit : visits) {
    if (!visit.failure.is_ok()) {
      rows.push_back({visit.host, "not examined"});
      continue;
    }
    const auto value = [&](std::string_view fact) { return std::string(or_not_known(value_of(visit, fact))); };
    rows.push_back({visit.host, value("kernel"), value("cores"), value("governor"),
                    clock_text(visit, &visit == answered.front()),
                    fmt::format("{} {}", value("interface"), visit.look.address), value("MTU"), reached_text(visit)});
  }
  text += table_text(rows);
  if (answered.size() > 1) {
    text += "\nThe same on all that answered\n\n";
    for (const std::string& fact : facts_in(answered)) {
      if (hosts_by_value(answered, fact).size() > 1) continue;
      constexpr std::size_t kIndent = 24;
      text += fmt::format("  {:<22}{}", fact, wrapped(or_not_known(value_of(*answered.front(), fact)), kIndent));
    }
  }
  return text + findings_text(findings);
}

std::string diagnosis_json(std::span<const Visit> visits, std::span<const Symptom> findings) {
  Json hosts = Json::array();
  for (const Visit& visit : visits) {
    Json host{{"name", visit.host}, {"failure", visit.failure.is_ok() ? Json() : Json(visit.failure.message())}};
    if (visit.failure.is_ok()) {
      Json facts = Json::object();
      for (const Fact& fact : visit.look.facts) facts[fact.name] = fact.value.empty() ? Json() : Json(fact.value);
      const auto own = parse_json<Json>(visit.look.condition);
      host.update({{"hostname", visit.look.hostname},
                   {"address", visit.look.address},
                   {"facts", std::move(facts)},
                   {"clock", clock_json(visit.clock)},
                   {"routes", routes_json(visits, visit)},
                   {"machine", own.is_object() ? own.value("machine", Json()) : Json()},
                   {"findings", own.is_object() ? own.value("findings", Json()) : Json()}});
    }
    hosts.push_back(std::move(host));
  }
  const Json all{{"hosts", std::move(hosts)}, {"findings", findings_json(findings)}};
  return json_text(all, 2) + "\n";
}

}  // namespace tutti::harness::doctor
