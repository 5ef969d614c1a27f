// SPDX-License-Identifier: Apache-2.0
#include "src/run_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "harness/exchange/added.h"
#include "harness/report/flight.h"
#include "harness/text/counted.h"
#include "harness/text/streams.h"
#include "impl/types/names.h"
#include "src/jobs.h"
#include "src/program.h"

namespace tutti::program {
namespace {

/// Returns whether all was written, or prints why not.
bool complain_unless(const Status& written) {
  if (!written.is_ok()) complain(error(written.code(), "--flight: {}", written.message()));
  return written.is_ok();
}

/// Writes the last operations of the ranks, where their journals have any, and prints how to read them.
void record_calls(const std::string& folder, int ranks, const harness::CallsOfRanks& calls) {
  const bool has_any = !std::ranges::all_of(calls, [](const auto& one) { return one.second.empty(); });
  const Status written = harness::write_flight(folder, ranks, has_any ? calls : harness::CallsOfRanks());
  if (!complain_unless(written) || !has_any) return;
  const bool are_all = std::ssize(calls) == ranks;
  harness::to_stderr(fmt::format(
      "# the last operations of {}{} ranks are in '{}': python3 -m torch.distributed.flight_recorder.fr_trace {} "
      "--prefix {}{}\n",
      are_all ? "" : fmt::format("{} of ", calls.size()), ranks, shown(folder), shown(folder), harness::kFlightPrefix,
      are_all ? "" : " --allow-incomplete-ranks"));
}

/// Writes the stacks of the ranks' processes, if they could be read.
void record_stacks(const std::string& folder, int ranks, const std::vector<harness::RankStack>& stacks) {
  if (!complain_unless(harness::write_stacks(folder, ranks, stacks)) || stacks.empty()) return;
  const auto read = std::ranges::count_if(stacks, harness::process::is_read);
  const std::string some = read == std::ssize(stacks) ? "" : fmt::format("{} of ", read);
  harness::to_stderr(fmt::format("# the stacks of {}{} are in '{}/{}'\n", some,
                                 harness::counted(std::ssize(stacks), "process", "es"), shown(folder),
                                 harness::kStacksName));
}

}  // namespace

Status check_flight(const Settings& settings) {
  if (settings.flight.empty()) return {};
  if (settings.reach.joined != nullptr) {
    return error(Code::invalid_argument, "--flight: ranks have to be started by tutti, and {} has started these",
                 settings.reach.joined->starter);
  }
  std::error_code failure;
  std::filesystem::create_directories(settings.flight, failure);
  if (!failure && std::filesystem::is_directory(settings.flight, failure)) return {};
  return error(Code::invalid_argument, "--flight: '{}' is no folder and cannot be made one", shown(settings.flight));
}

void record_flight(const std::string& folder, int ranks, const harness::Recall& recall) {
  for (const std::string& why : recall.silent) {
    harness::to_stderr(fmt::format("# without the last operations of {}\n", why));
  }
  record_calls(folder, ranks, recall.calls);
  record_stacks(folder, ranks, recall.stacks);
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
