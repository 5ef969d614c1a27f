// SPDX-License-Identifier: Apache-2.0
#include "harness/hosts/host_talk.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/text/json_reader.h"
#include "impl/types/names.h"

namespace tutti::harness::hosts {
namespace {

using nlohmann::json;

template <class Read>
auto understand(std::string_view what, std::string_view text, Read read) -> decltype(read(json())) {
  auto value = read_json(Code::invalid_argument, what, text, read);
  if (value.is_ok()) return value;
  return error(Code::invalid_argument, "{} cannot be read: are both hosts of the same build? ({})", what,
               value.status().message());
}

}  // namespace

Frame in_group(int group, const Frame& frame) { return {frame.type, fmt::format("{} {}", group, frame.text)}; }

bool is_of_group(std::string_view type) {
  constexpr std::array<std::string_view, 14> kTypes{"meets",   "awaits", "up",       "from",     "closed",
                                                    "garbage", "exit",   "status",   "standing", "unable",
                                                    "calls",   "stack",  "recalled", "ended"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

Result<GroupFrame> group_frame_from(const Frame& frame) {
  GroupFrame found;
  const char* const last = frame.text.data() + frame.text.size();
  const auto [end, failure] = std::from_chars(frame.text.data(), last, found.group);
  if (failure != std::errc() || found.group < 0 || end == last || *end != ' ')
    return error(Code::io, "'{}' names no group: '{}'", shown(frame.type), shown(frame.text));
  found.frame = {frame.type, std::string(end + 1, last)};
  return found;
}

tcp::Secret key_of_group(const tcp::Secret& key, int group) {
  const auto number = static_cast<std::uint32_t>(group);
  return tcp::derived_from(key, "group", {tcp::bytes_of(number)});
}

std::string to_line(const Invitation& invitation) {
  return json{{"key", invitation.key},           {"address", invitation.address},
              {"host", invitation.host},         {"interface", invitation.interface},
              {"control", invitation.control},   {"control_socket", invitation.control_socket},
              {"backends", invitation.backends}, {"transports", invitation.transports},
              {"rails", invitation.rails}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

Result<Invitation> invitation_from(std::string_view line) {
  return understand("the launcher's invitation on stdin", line, [](const json& all) -> Result<Invitation> {
    Invitation invitation{.key = all.at("key"),
                          .address = all.at("address"),
                          .interface = all.at("interface"),
                          .control = all.at("control"),
                          .backends = all.at("backends"),
                          .transports = all.at("transports"),
                          .rails = all.at("rails").get<std::vector<std::string>>()};
    TUTTI_RETURN_IF_ERROR(read_number(all, "host", invitation.host, 0));
    TUTTI_RETURN_IF_ERROR(read_number(all, "control_socket", invitation.control_socket, -1));
    return invitation;
  });
}

std::string to_json(const HostHello& hello) {
  json rails = json::array();
  for (const HostRail& rail : hello.rails) rails.push_back({{"address", rail.address}, {"problem", rail.problem}});
  return json{{"build", hello.build},
              {"name", hello.name},
              {"kernel", hello.kernel},
              {"cores", hello.cores},
              {"description", hello.description},
              {"fingerprint", hello.fingerprint},
              {"interface", hello.interface},
              {"topology_address", hello.topology_address},
              {"topology_pattern", hello.topology_pattern},
              {"rails", std::move(rails)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<HostHello> hello_from_json(std::string_view text) {
  return understand("what a host says of itself", text, [](const json& all) -> Result<HostHello> {
    HostHello hello{.build = all.at("build"),
                    .name = all.at("name"),
                    .kernel = all.at("kernel"),
                    .description = all.at("description"),
                    .fingerprint = all.at("fingerprint"),
                    .interface = all.at("interface"),
                    .topology_address = all.at("topology_address"),
                    .topology_pattern = all.at("topology_pattern")};
    for (const json& rail : all.at("rails")) {
      hello.rails.push_back({.address = rail.at("address"), .problem = rail.at("problem")});
    }
    TUTTI_RETURN_IF_ERROR(read_number(all, "cores", hello.cores, 1));
    if (!json::parse(hello.description, nullptr, false).is_object())
      return error(Code::invalid_argument, "its description is no JSON object");
    return hello;
  });
}

std::string to_json(const MeetingPlace& place) {
  return json{{"exchange_address", place.exchange_address}, {"domain_address", place.domain_address}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

Result<MeetingPlace> meeting_place_from_json(std::string_view text) {
  return understand("where a group meets", text, [](const json& all) -> Result<MeetingPlace> {
    return MeetingPlace{.exchange_address = all.at("exchange_address"), .domain_address = all.at("domain_address")};
  });
}

std::string to_json(const HostJob& job) {
  return json{{"ranks", job.ranks},           {"host", job.host},
              {"first", job.first},           {"here", job.here},
              {"started", job.started},       {"control", job.control},
              {"arguments", job.arguments},   {"domain_bytes", job.domain_bytes},
              {"timeout_ns", job.timeout_ns}, {"launcher_ns", job.launcher_ns},
              {"place", to_json(job.place)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<HostJob> job_from_json(std::string_view text) {
  return understand("the job that the launcher gives", text, [](const json& all) -> Result<HostJob> {
    HostJob job{.control = all.at("control"), .arguments = all.at("arguments")};
    TUTTI_RETURN_IF_ERROR(read_number(all, "ranks", job.ranks, 1));
    TUTTI_RETURN_IF_ERROR(read_number(all, "host", job.host, 0));
    TUTTI_RETURN_IF_ERROR(read_number(all, "first", job.first, 0));
    TUTTI_RETURN_IF_ERROR(read_number(all, "here", job.here, 1));
    TUTTI_RETURN_IF_ERROR(read_number(all, "started", job.started, 0));
    if (job.started > job.here || job.here > job.ranks || job.first > job.ranks - job.here) {
      return error(Code::invalid_argument, "{} ranks from {} on, of {}, of which {} are started", job.here, job.first,
                   job.ranks, job.started);
    }
    TUTTI_RETURN_IF_ERROR(read_number(all, "domain_bytes", job.domain_bytes));
    TUTTI_RETURN_IF_ERROR(read_number(all, "timeout_ns", job.timeout_ns, 0));
    TUTTI_RETURN_IF_ERROR(read_number(all, "launcher_ns", job.launcher_ns));
    TUTTI_ASSIGN_OR_RETURN(job.place, across_from_json(all.at("place").get<std::string>()));
    return job;
  });
}

std::string to_lines(std::span<const RankReport> reports) {
  std::string lines;
  for (const RankReport& one : reports) {
    lines += fmt::format("{} {} {} {} {} {}\n", one.waited_ns, one.granted_ns, one.operation, one.case_index,
                         one.activity, one.state);
  }
  return lines;
}

Result<std::vector<RankReport>> reports_from_lines(std::string_view lines, int ranks) {
  std::vector<RankReport> reports;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    RankReport& one = reports.emplace_back();
    std::string_view rest = line;
    const auto take = [&rest](auto& number) {
      const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      const bool is_number = failure == std::errc() && number >= 0 && end != rest.data() + rest.size() && *end == ' ';
      if (is_number) rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
      return is_number;
    };
    const bool are_numbers = take(one.waited_ns) && take(one.granted_ns) && take(one.operation) &&
                             take(one.case_index) && take(one.activity);
    if (!are_numbers || rest.size() != 1) {
      return error(Code::invalid_argument, "'{}' is not a rank's five numbers and the state of its process",
                   shown(line));
    }
    one.state = rest.front();
  }
  if (reports.size() == static_cast<std::size_t>(ranks)) return reports;
  return error(Code::invalid_argument, "{} lines of ranks, and it has {} ranks", reports.size(), ranks);
}

Result<RankEvent> event_from_text(std::string_view type, std::string_view text) {
  // How many numbers follow the rank, and whether they are all.
  struct Form {
    std::string_view type;
    std::size_t numbers;
    char behind;  ///< what separates them from the rest; 0: nothing follows
  };
  constexpr std::array<Form, 8> kForms{{{"up", 1, 0},
                                        {"from", 0, ' '},
                                        {"closed", 0, 0},
                                        {"standing", 0, ' '},
                                        {"garbage", 1, ' '},
                                        {"exit", 2, 0},
                                        {"calls", 0, ' '},
                                        {"stack", 0, ' '}}};
  const auto* const form = std::ranges::find(kForms, type, &Form::type);
  if (form == kForms.end()) return error(Code::io, "it sends '{}', which is no message of a host", shown(type));
  RankEvent event;
  std::string_view rest = text;
  for (std::size_t i = 0; i <= form->numbers; ++i) {
    int number = 0;
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool is_last = i == form->numbers;
    const bool ends_well = is_last && form->behind == 0 ? rest.empty() : rest.starts_with(' ');
    if (failure != std::errc() || number < 0 || !ends_well) {
      return error(Code::io, "'{}' of a rank cannot be read: '{}'", type, shown(text));
    }
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
    if (i == 0) event.rank = number;
    if (i > 0) event.numbers.push_back(number);
  }
  event.rest = rest;
  return event;
}

}  // namespace tutti::harness::hosts
