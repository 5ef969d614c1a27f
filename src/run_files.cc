// SPDX-License-Identifier: Apache-2.0
#include "src/run_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "harness/exchange/added.h"
#include "impl/types/names.h"

namespace tutti::program {

Status check_flight(const Settings& settings) {
  if (settings.flight.empty()) return {};
  if (!settings.conditions.topology.hosts.empty() || settings.reach.joined != nullptr) {
    return error(Code::invalid_argument,
                 "--flight: ranks have to be started by tutti, on this host: the journals of others cannot be read");
  }
  std::error_code failure;
  std::filesystem::create_directories(settings.flight, failure);
  if (!failure && std::filesystem::is_directory(settings.flight, failure)) return {};
  return error(Code::invalid_argument, "--flight: '{}' is no folder and cannot be made one", shown(settings.flight));
}

std::string add_files(std::string& list) {
  std::string names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    if (name.ends_with(".xml")) {
      auto added = harness::exchange::add_file(name);
      if (!added.is_ok()) return std::string(added.status().message());
      name = std::move(added).value();
    }
    names += (begin == 0 ? "" : ",") + name;
    begin = end + 1;
  }
  list = names;
  return {};
}

}  // namespace tutti::program
