// SPDX-License-Identifier: Apache-2.0
#include "harness/launch/machine_talk.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace tutti::harness::launch {
namespace {

using nlohmann::json;

Status not_understood(std::string_view what) {
  return error(Code::invalid_argument, "{} cannot be read: are both machines of the same build?", what);
}

}  // namespace

std::string to_line(const Invitation& invitation) {
  return json{{"secret", invitation.secret},
              {"address", invitation.address},
              {"machine", invitation.machine},
              {"interface", invitation.interface},
              {"control", invitation.control}}
             .dump() +
         "\n";
}

Result<Invitation> invitation_from(std::string_view line) {
  try {
    const json all = json::parse(line);
    return Invitation{.secret = all.at("secret"),
                      .address = all.at("address"),
                      .machine = all.at("machine"),
                      .interface = all.at("interface"),
                      .control = all.at("control")};
  } catch (const json::exception&) {
    return not_understood("the launcher's invitation on stdin");
  }
}

std::string to_json(const MachineHello& hello) {
  return json{{"build", hello.build},
              {"name", hello.name},
              {"kernel", hello.kernel},
              {"cores", hello.cores},
              {"interface", hello.interface},
              {"exchange_address", hello.exchange_address},
              {"domain_address", hello.domain_address}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<MachineHello> hello_from_json(std::string_view text) {
  try {
    const json all = json::parse(text);
    return MachineHello{.build = all.at("build"),
                        .name = all.at("name"),
                        .kernel = all.at("kernel"),
                        .cores = all.at("cores"),
                        .interface = all.at("interface"),
                        .exchange_address = all.at("exchange_address"),
                        .domain_address = all.at("domain_address")};
  } catch (const json::exception&) {
    return not_understood("what a machine says of itself");
  }
}

std::string to_json(const MachineJob& job) {
  return json{{"ranks", job.ranks},
              {"first", job.first},
              {"here", job.here},
              {"started", job.started},
              {"arguments", job.arguments},
              {"domain_bytes", job.domain_bytes},
              {"timeout_ns", job.timeout_ns},
              {"launcher_ns", job.launcher_ns},
              {"place", to_json(job.place)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<MachineJob> job_from_json(std::string_view text) {
  try {
    const json all = json::parse(text);
    MachineJob job{.ranks = all.at("ranks"),
                   .first = all.at("first"),
                   .here = all.at("here"),
                   .started = all.at("started"),
                   .arguments = all.at("arguments"),
                   .domain_bytes = all.at("domain_bytes"),
                   .timeout_ns = all.at("timeout_ns"),
                   .launcher_ns = all.at("launcher_ns")};
    TUTTI_ASSIGN_OR_RETURN(job.place, across_from_json(all.at("place").get<std::string>()));
    return job;
  } catch (const json::exception&) {
    return not_understood("the job that the launcher gives");
  }
}

std::string to_words(const Status& failure) {
  return fmt::format("{} {}", static_cast<int>(failure.code()), failure.message());
}

Status failure_from_words(std::string_view words) {
  const std::size_t space = std::min(words.find(' '), words.size());
  int code = 0;
  std::from_chars(words.data(), words.data() + space, code);
  const bool is_code = code > 0 && code <= static_cast<int>(Code::refuted);
  return Status(is_code ? static_cast<Code>(code) : Code::aborted,
                std::string(words.substr(std::min(space + 1, words.size()))));
}

}  // namespace tutti::harness::launch
