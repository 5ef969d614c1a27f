// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/host_look.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/doctor/diagnosis.h"
#include "harness/machine/clock.h"
#include "harness/machine/tree.h"
#include "harness/process/waits.h"
#include "harness/text/json_reader.h"
#include "impl/tcp/interface.h"
#include "impl/tcp/socket.h"

namespace tutti::harness::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr auto kPatienceWithAsker = 120s;
constexpr auto kConnectPatience = 3s;
constexpr std::size_t kLongestLine = 1 << 20;

std::string dumped(const json& all) { return all.dump(-1, ' ', false, json::error_handler_t::replace); }

/// Empty at the end of stdin, or where nobody asks any more.
std::string next_line() {
  static std::string read;
  const auto end = Clock::now() + kPatienceWithAsker;
  for (;;) {
    if (const std::size_t at = read.find('\n'); at != std::string::npos) {
      std::string line = read.substr(0, at);
      read.erase(0, at + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (read.size() > kLongestLine || !wait_readable(STDIN_FILENO, left)) return "";
    char bytes[4096];
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    read.append(bytes, static_cast<std::size_t>(n));
  }
}

/// Whether somebody hears it.
bool say(const std::string& text) {
  const std::string line = fmt::format("{}{}\n", kWord, text);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

void add_network_facts(HostLook& look) {
  const Tree tree("/");
  const std::string name = tcp::interface_with(look.address);
  const auto of_interface = [&](const char* file) {
    return name.empty() ? "" : tree.text(fmt::format("sys/class/net/{}/{}", name, file));
  };
  look.facts.push_back({"interface", name});
  look.facts.push_back({"MTU", of_interface("mtu")});
  look.facts.push_back({"link speed in Mbit/s", of_interface("speed")});
}

Result<Reach> try_to_reach(const std::string& address) {
  Reach reach;
  const auto begin = Clock::now();
  TUTTI_ASSIGN_OR_RETURN(const Descriptor socket, tcp::connect_to(address));
  pollfd one{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  ::poll(&one, 1, static_cast<int>(std::chrono::milliseconds(kConnectPatience).count()));
  reach.microseconds = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  if (one.revents == 0) return error(Code::timeout, "no answer from {} within {} s", address, kConnectPatience.count());
  if (const int failure = tcp::error_of(socket.get()); failure != 0) {
    return error(Code::unavailable, "cannot connect to {}: {}", address, std::strerror(failure));
  }
  TUTTI_ASSIGN_OR_RETURN(reach.from, tcp::own_address(socket.get()));
  reach.interface = tcp::interface_with(reach.from);
  reach.mtu = tcp::mtu_of_route(socket.get());
  return reach;
}

std::string answer_to_reach(const std::vector<std::string>& addresses) {
  std::vector<Reach> all;
  for (const std::string& address : addresses) {
    const auto reached = try_to_reach(address);
    all.push_back(reached.is_ok() ? reached.value() : Reach{.failure = reached.status().message()});
  }
  return to_json(all);
}

Result<LookRequest> request_from(std::string_view line) {
  return read_json(Code::invalid_argument, "what `tutti doctor` is asked for", line,
                   [](const json& all) -> Result<LookRequest> {
                     return LookRequest{.interface = all.value("interface", ""),
                                        .launcher = all.value("launcher", ""),
                                        .reach = all.value("reach", std::vector<std::string>())};
                   });
}

Result<Symptom> finding_from(const json& one) {
  const std::string severity = one.at("severity");
  return Symptom{.name = one.at("name"),
                 .severity = severity == to_string(Severity::blocks)   ? Severity::blocks
                             : severity == to_string(Severity::spoils) ? Severity::spoils
                                                                       : Severity::note,
                 .what = one.at("what"),
                 .why = one.at("why"),
                 .advice = one.at("advice")};
}

}  // namespace

std::string to_json(const HostLook& look) {
  json facts = json::array();
  for (const Fact& fact : look.facts) facts.push_back({fact.name, fact.value});
  return dumped(
      {{"hostname", look.hostname},
       {"build", look.build},
       {"machine", look.machine},
       {"address", look.address},
       {"listens", look.listens},
       {"facts", std::move(facts)},
       {"condition", look.condition},
       {"seconds", look.seconds},
       {"findings", json::parse(findings_json(look.findings).dump(-1, ' ', false, json::error_handler_t::replace))}});
}

Result<HostLook> look_from_json(std::string_view text) {
  return read_json(Code::io, "what a host says of itself", text, [](const json& all) -> Result<HostLook> {
    HostLook look{.hostname = all.at("hostname"),
                  .build = all.at("build"),
                  .machine = all.at("machine"),
                  .address = all.at("address"),
                  .listens = all.at("listens"),
                  .facts = {},
                  .condition = all.at("condition"),
                  .findings = {},
                  .seconds = all.at("seconds")};
    for (const json& fact : all.at("facts")) look.facts.push_back({.name = fact.at(0), .value = fact.at(1)});
    for (const json& one : all.at("findings")) {
      TUTTI_ASSIGN_OR_RETURN(Symptom finding, finding_from(one));
      look.findings.push_back(std::move(finding));
    }
    return look;
  });
}

std::string to_json(const LookRequest& request) {
  return dumped({{"interface", request.interface}, {"launcher", request.launcher}, {"reach", request.reach}});
}

std::string to_json(const std::vector<Reach>& all) {
  json list = json::array();
  for (const Reach& one : all) {
    list.push_back({{"from", one.from},
                    {"interface", one.interface},
                    {"mtu", one.mtu},
                    {"microseconds", one.microseconds},
                    {"failure", one.failure}});
  }
  return dumped({{"reached", std::move(list)}});
}

Result<std::vector<Reach>> reaches_from_json(std::string_view text) {
  return read_json(Code::io, "whom a host reaches", text, [](const json& all) -> Result<std::vector<Reach>> {
    std::vector<Reach> reaches;
    for (const json& one : all.at("reached")) {
      Reach reach{.from = one.at("from"),
                  .interface = one.at("interface"),
                  .microseconds = one.at("microseconds"),
                  .failure = one.at("failure")};
      TUTTI_RETURN_IF_ERROR(read_number(one, "mtu", reach.mtu, 0));
      reaches.push_back(std::move(reach));
    }
    return reaches;
  });
}

Status answer_as_host(const std::function<Result<HostLook>()>& look) {
  tcp::Listener listener;  // the others only connect: it takes nothing from them
  for (;;) {
    const std::string line = next_line();
    if (line.empty()) return {};
    std::string answer;
    if (line == kAsksForClock) {
      answer = fmt::format("{}", time_of_day_ns());
    } else {
      TUTTI_ASSIGN_OR_RETURN(const LookRequest request, request_from(line));
      if (!request.reach.empty()) {
        answer = answer_to_reach(request.reach);
      } else {
        const auto begin = Clock::now();
        TUTTI_ASSIGN_OR_RETURN(HostLook seen, look());
        seen.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        TUTTI_ASSIGN_OR_RETURN(seen.address, request.interface.empty() ? tcp::address_towards(request.launcher)
                                                                       : tcp::address_of_interface(request.interface));
        TUTTI_ASSIGN_OR_RETURN(listener, tcp::listen_on(seen.address));
        seen.listens = listener.address;
        add_network_facts(seen);
        answer = to_json(seen);
      }
    }
    if (!say(answer)) return {};
  }
}

}  // namespace tutti::harness::doctor
