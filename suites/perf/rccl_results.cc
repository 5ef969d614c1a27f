// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/rccl_results.h"

#include <cctype>
#include <cmath>
#include <set>

#include "harness/text/json_writer.h"

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

/// `AllReduce` of all_reduce_perf.
std::string name_of(const Program& program) {
  static const std::map<std::string, std::string, std::less<>> kJoined{{"alltoall_perf", "AlltoAll"},
                                                                       {"alltoallv_perf", "AlltoAllv"},
                                                                       {"sendrecv_perf", "SendRecv"},
                                                                       {"hypercube_perf", "HyperCube"}};
  const std::string program_name(program.name);
  if (const auto joined = kJoined.find(program_name); joined != kJoined.end()) return joined->second;
  std::string name;
  bool begins = true;
  for (const char c : program_name.substr(0, program_name.find("_perf"))) {
    if (c != '_') name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return name;
}

/// The names of the members, in their order, and of the columns.
constexpr const char* kColumns =
    "numCycle,collective,nodes,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n";

std::string csv_of(const Json& records) {
  std::string text = kColumns;
  for (const Json& record : records) {
    std::string line;
    for (const Json& value : record) {
      line += (line.empty() ? "" : ",") + (value.is_string() ? value.get<std::string>() : value.dump());
    }
    text += line + "\n";
  }
  return text;
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

Result<RcclResults> RcclResults::open(const Program& program, const Settings& settings,
                                      std::span<const Device> devices) {
  TUTTI_ASSIGN_OR_RETURN(harness::OutputFile file, harness::OutputFile::open(settings.policy_or_file, 0));
  RcclResults results(std::move(file), settings.rccl_format == "csv");
  results.name_ = name_of(program);
  std::set<std::string> nodes;
  std::set<std::pair<std::string, std::int64_t>> processes;
  for (const Device& device : devices) {
    nodes.insert(device.hostname);
    processes.emplace(device.hostname, device.pid);
  }
  results.nodes_ = std::max<std::size_t>(1, nodes.size());
  results.processes_ = std::max<std::size_t>(1, processes.size());
  results.ranks_of_process_ = static_cast<std::size_t>(settings.ranks_here());
  if (results.file_.is_replaceable()) TUTTI_RETURN_IF_ERROR(results.write());
  return results;
}

Status RcclResults::add(const TableRow& row) {
  const int cycle = cycles_[{row.size.bytes, std::string(row.dtype), std::string(row.op), row.root}]++;
  add(row, row.out, false, cycle);
  add(row, row.in, true, cycle);
  return file_.is_replaceable() ? write() : Status();
}

void RcclResults::add(const TableRow& row, const Measurement& one, bool is_in_place, int cycle) {
  records_.push_back({{"numCycle", cycle},
                      {"name", name_},
                      {"nodes", nodes_},
                      {"ranks", processes_},
                      {"ranksPerNode", processes_ / nodes_},
                      {"gpusPerRank", ranks_of_process_},
                      {"size", row.size.bytes},
                      {"type", row.dtype},
                      {"redop", row.op},
                      {"inPlace", is_in_place ? 1 : 0},
                      {"time", finite(one.time_us)},
                      {"algBw", finite(one.bandwidths.algorithm)},
                      {"busBw", finite(one.bandwidths.bus)},
                      {"wrong", one.wrong ? Json(*one.wrong) : Json("N/A")}});
}

Status RcclResults::write() {
  return file_.replace(is_csv_ ? csv_of(records_) : harness::json_text(records_, 2) + "\n");
}

}  // namespace tutti::perf
