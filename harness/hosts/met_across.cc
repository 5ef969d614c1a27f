// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/met_across.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"
#include "impl/tcp/meeting.h"

namespace tutti::harness::hosts {
namespace {

/// What a process says once the hosts are known.
struct Line {
  std::string text;
  std::string exchange, domain;  ///< of process 0: where the others are awaited
  std::string between;           ///< of the first process of a host: where it listens
};

std::string to_json(const Line& line) {
  return nlohmann::json{
      {"text", line.text}, {"exchange", line.exchange}, {"domain", line.domain}, {"between", line.between}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Line> line_from_json(std::string_view text) {
  return read_json(Code::mismatch, "what it says of itself", text, [](const nlohmann::json& all) -> Result<Line> {
    return Line{.text = all.at("text"),
                .exchange = all.at("exchange"),
                .domain = all.at("domain"),
                .between = all.at("between")};
  });
}

}  // namespace

Result<MetAcross> meet_across(const HostsMeeting& meeting, const std::string& text) {
  const World& world = meeting.world;
  MetAcross met;
  TUTTI_ASSIGN_OR_RETURN(met.hosts, meet_hosts(meeting));
  const auto& all = met.hosts.all;
  Line mine{.text = text, .exchange = {}, .domain = {}, .between = {}};
  tcp::Listener between;
  if (world.process == 0) {
    TUTTI_ASSIGN_OR_RETURN(tcp::Listener exchange, tcp::listen_on(met.hosts.interface));
    TUTTI_ASSIGN_OR_RETURN(tcp::Listener domain, tcp::listen_on(met.hosts.interface));
    mine.exchange = exchange.address;
    mine.domain = domain.address;
    met.listeners = {.exchange = std::move(exchange.socket), .domain = std::move(domain.socket)};
  }
  if (world.local_process == 0) {
    TUTTI_ASSIGN_OR_RETURN(between, tcp::listen_on(met.hosts.interface));
    mine.between = between.address;
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines, tcp::meet({.key = met.hosts.key,
                                                                          .role = tcp::Role::meeting_of_places,
                                                                          .process = world.process,
                                                                          .processes = world.processes,
                                                                          .text = to_json(mine),
                                                                          .address = met.hosts.launcher,
                                                                          .listener = met.hosts.listener.socket.get(),
                                                                          .timeout = meeting.timeout}));
  RunnerSockets request{.runner = world.process,
                        .key = met.hosts.key,
                        .listener = between.socket.get(),
                        .timeout = meeting.timeout,
                        .role = tcp::Role::hosts,
                        .what = "how the job ends"};
  for (std::size_t process = 0; process < lines.size(); ++process) {
    auto line = line_from_json(lines[process]);
    if (!line.is_ok()) return error(Code::mismatch, "rank {}: {}", process, line.status().message());
    met.texts.push_back(std::move(line.value().text));
    request.addresses.push_back(std::move(line.value().between));
    if (process > 0) continue;
    met.place = {.interface = met.hosts.interface,
                 .exchange_address = line.value().exchange,
                 .domain_address = line.value().domain,
                 .key = tcp::to_text(met.hosts.key)};
  }
  if (world.local_process > 0) return met;
  if (world.process > 0) request.others = {0};
  for (auto host = std::next(all.begin()); world.process == 0 && host != all.end(); ++host) {
    request.others.push_back(host->first);
  }
  TUTTI_ASSIGN_OR_RETURN(met.between, connect_to_runners(request));
  return met;
}

}  // namespace tutti::harness::hosts
