// SPDX-License-Identifier: Apache-2.0
// `tutti export`: a schedule in the format of another program.
#include "harness/exchange/export.h"

#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "harness/cases/sweep.h"
#include "harness/exchange/msccl.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "impl/algorithms/algorithm.h"
#include "impl/types/names.h"
#include "impl/types/number.h"
#include "src/machine_file.h"
#include "src/program.h"

namespace tutti::program {
namespace {

constexpr int kMostExportedRanks = 4096;

struct ExportRequest {
  std::string collective;
  std::string algorithm;
  std::string ranks;
  std::string root = "0";
  std::string format;
  std::string size = "1M";
  std::string machine;
  std::string out = "-";
};

/// Costs of a machine's memory, if one is named.
Result<std::optional<harness::exchange::LocalCosts>> costs_of(const ExportRequest& request) {
  if (request.machine.empty()) return std::optional<harness::exchange::LocalCosts>();
  TUTTI_ASSIGN_OR_RETURN(const harness::simulate::Machine machine, machine_of_file(request.machine));
  return std::optional(
      harness::exchange::LocalCosts{.reduce = [table = machine.model.reduce](double bytes) { return table.at(bytes); },
                                    .copy = [table = machine.model.copy](double bytes) { return table.at(bytes); }});
}

Result<std::string> exported(const ExportRequest& request, const CLI::App& command) {
  TUTTI_ASSIGN_OR_RETURN(const Collective collective, parse_collective(request.collective));
  TUTTI_ASSIGN_OR_RETURN(const Algorithm* const algorithm,
                         of_flag("--algorithm", find_algorithm(collective, request.algorithm)));
  const bool is_goal = request.format == "goal";
  if (!is_goal && request.format != "msccl-xml") {
    const std::string names[] = {"goal", "msccl-xml"};
    const Status unknown = unknown_name("format", request.format, names);
    return error(unknown.code(), "--format: {}", unknown.message());
  }
  for (const auto& [flag, why] : {std::pair("--size", "counts chunks"), {"--machine", "has no times"}}) {
    if (is_goal || command.count(flag) == 0) continue;
    return error(Code::invalid_argument, "{}: has no meaning with --format msccl-xml, which {}; leave it out", flag,
                 why);
  }
  TUTTI_ASSIGN_OR_RETURN(const auto costs, costs_of(request));
  const int most = is_goal ? kMostExportedRanks : harness::exchange::kMostGpus;
  TUTTI_ASSIGN_OR_RETURN(const int ranks,
                         of_flag("--ranks", parse_number(request.ranks, "a number of ranks", 2, most)));
  TUTTI_ASSIGN_OR_RETURN(const int root, of_flag("--root", parse_number(request.root, "a rank", 0, ranks - 1)));
  if (!is_rooted(collective) && command.count("--root") > 0) {
    return error(Code::invalid_argument, "--root: {} has no root; leave --root out", to_string(collective));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::int64_t bytes, of_flag("--size", harness::parse_bytes(request.size)));
  Problem problem{.collective = base_of(collective), .ranks = ranks, .root = root};
  if (has_window(problem.collective)) problem.pairing.window = 1;
  const Schedule schedule = schedule_of(*algorithm, problem);
  return is_goal ? harness::exchange::goal_text(schedule, bytes, costs) : harness::exchange::msccl_text(schedule);
}

int export_schedule(const ExportRequest& request, const CLI::App& command) {
  const auto text = exported(request, command);
  if (!text.is_ok()) return complain(text.status());
  if (request.out == "-") {
    harness::print("{}", text.value());
    return exit_ok;
  }
  const Status written = harness::replace_file(request.out, text.value());
  return written.is_ok() ? exit_ok : complain(written);
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("export", "a schedule in the format of another program");
  command->footer("Example: tutti export all_reduce --algorithm ring --ranks 4 --format msccl-xml --out ring.xml");
  auto request = std::make_shared<ExportRequest>();
  command->add_option("COLLECTIVE", request->collective, "what is written")->type_name("")->required();
  const auto add = [&](const char* flag, std::string& value, const char* type, const char* help) {
    CLI::Option* option = command->add_option(flag, value, help)->type_name(type);
    value.empty() ? option->required() : option->default_str(value);
  };
  add("--algorithm", request->algorithm, "NAME", "an own algorithm by name");
  add("--ranks", request->ranks, "N", "number of ranks");
  add("--root", request->root, "RANK", "where the collective has one");
  add("--format", request->format, "NAME", "goal (LogGOPSim), or msccl-xml");
  add("--size", request->size, "BYTES", "of goal: of the larger of a rank's buffers");
  command
      ->add_option("--machine", request->machine,
                   "of goal: a machine in TOML, whose costs of reducing and copying become calc lines; without it "
                   "there are none")
      ->type_name("FILE");
  add("--out", request->out, "FILE", "write here; - is stdout");
  command->callback(
      [&action, request, command] { action = [request, command] { return export_schedule(*request, *command); }; });
}

}  // namespace tutti::program
