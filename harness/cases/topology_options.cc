// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/topology_options.h"

#include <array>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "harness/cases/conditions.h"
#include "harness/cases/kinds.h"
#include "impl/types/number.h"

namespace tutti::harness::cases {
namespace {

constexpr std::array kDevices{Named{RunsOn::gpu, "gpu"}, Named{RunsOn::host, "host"}};
constexpr std::array kBinds{Named{Bind::core, "core"}, Named{Bind::numa, "numa"}, Named{Bind::none, "none"}};

const TopologyOptions kUsualTopology;

/// Every device has a rank.
Status check_gpus(const Conditions& values, const Beside& beside) {
  if (beside.ranks_on == RanksOn::own_device && values.topology.gpus != 1) {
    return error(Code::invalid_argument, "'{}' of ranks that have a GPU each: did you mean --ranks {}?",
                 values.topology.gpus, values.topology.gpus);
  }
  if (values.topology.gpus <= beside.ranks) return {};
  return error(Code::invalid_argument, "{} of them are more than {} rank{}: did you mean {}, or --ranks {}?",
               values.topology.gpus, beside.ranks, beside.ranks == 1 ? "" : "s", beside.ranks, values.topology.gpus);
}

constexpr std::array kClashesOfBlocks{Clash{.option = "--ranks-as",
                                            .kinds = [](const RankKind& kind) { return !kind.is_on_device; },
                                            .why = "whose ranks are no thread blocks",
                                            .meant = "--ranks-as blocks"}};

const std::array kTopologyOptions{
    Condition{
        .option = "--bind",
        .value = "KIND",
        .help = "core: rank r to the r-th allowed core; numa: ranks in equal shares to the nodes; none (default: "
                "core where every rank has one)",
        .example = "none",
        .read = [](Conditions& values, std::string_view text) { return store(parse_bind(text), values.topology.bind); },
        .text =
            [](const Conditions& values) {
              return std::string(values.topology.bind ? to_string(*values.topology.bind) : "");
            },
        .names = [] { return names_in(kBinds); }},
    Condition{
        .option = "--device",
        .value = "NAME",
        .usual = "gpu",
        .help = "what runs ranks that are thread blocks: gpu, or host: threads of this process that run the text of "
                "the kernels, slowly",
        .example = "host",
        .read = [](Conditions& values,
                   std::string_view text) { return store(parse_runs_on(text), values.topology.device); },
        .text = [](const Conditions& values) { return std::string(to_string(values.topology.device)); },
        .column = {.name = "device",
                   .description = "what ran ranks that are thread blocks, where it was no GPU: host, threads that run "
                                  "the text of the kernels",
                   .usual = "gpu",
                   .words = "thread blocks as threads of the {}",
                   .is_of_ranks = true},
        .field =
            [](const Conditions& values) {
              return values.topology.device == RunsOn::gpu ? "" : std::string(to_string(values.topology.device));
            },
        .clashes = kClashesOfBlocks,
        .names = [] { return names_in(kDevices); }},
    Condition{
        .option = "--lanes",
        .value = "N",
        .help = "thread blocks of a rank, which share the segments of a call out, 1 to 64 (default: as many as a "
                "GPU's multiprocessors are for each of its ranks, or 16 where ranks are processes; 1 on the host)",
        .example = "2",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of thread blocks", 1, 64), values.topology.lanes);
            },
        .text = [](const Conditions& values) { return unusual_number(values.topology.lanes, kUsualTopology.lanes); },
        .column = {.name = "lanes",
                   .type = ConditionColumn::Type::integer,
                   .description = "thread blocks of a rank, if an option chose them",
                   .words = "{} thread blocks a rank",
                   .is_of_ranks = true},
        .clashes = kClashesOfBlocks},
    Condition{.option = "--block-threads",
              .value = "N",
              .help = "threads of a thread block, 1 to 1024 (default: 512 on a GPU, 1 on the host)",
              .example = "2",
              .read =
                  [](Conditions& values, std::string_view text) {
                    return store(parse_number(text, "a number of threads", 1, 1024), values.topology.block_threads);
                  },
              .text =
                  [](const Conditions& values) {
                    return unusual_number(values.topology.block_threads, kUsualTopology.block_threads);
                  },
              .column = {.name = "block_threads",
                         .type = ConditionColumn::Type::integer,
                         .description = "threads of a thread block, if an option chose them",
                         .words = "{} threads a block",
                         .is_of_ranks = true},
              .clashes = kClashesOfBlocks},
    Condition{
        .option = "--gpus",
        .value = "N",
        .usual = "1",
        .help = "ranks that are thread blocks are dealt over this many devices, in ranges: the first GPUs, or with "
                "--device host as many sets of threads: 1 to 64, and at most as many as ranks",
        .example = "2",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of devices", 1, 64), values.topology.gpus);
            },
        .text = [](const Conditions& values) { return fmt::to_string(values.topology.gpus); },
        .column = {.name = "gpus",
                   .type = ConditionColumn::Type::integer,
                   .description = "devices that ranks as thread blocks were dealt over, where there were several",
                   .usual = "1",
                   .words = "ranks dealt over {} devices",
                   .is_of_ranks = true},
        .field = [](const Conditions& values) { return unusual_number(values.topology.gpus, kUsualTopology.gpus); },
        .clashes = kClashesOfBlocks,
        .check = check_gpus},
    Condition{
        .option = "--pretend-hosts",
        .value = "N",
        .help = "the ranks are on this many hosts, in blocks, all of them on this machine: ranks of two hosts share no "
                "memory (default with --transports tcp: each rank is a host of its own)",
        .example = "2",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of hosts", 1, 1024), values.topology.pretended_hosts);
            },
        .text =
            [](const Conditions& values) {
              return unusual_number(values.topology.pretended_hosts, kUsualTopology.pretended_hosts);
            },
        .column = {.name = "pretended_hosts",
                   .type = ConditionColumn::Type::integer,
                   .description = "hosts that the ranks were on, in blocks, all of them on this machine, if an option "
                                  "chose their number",
                   .words = "{} pretended hosts",
                   .is_of_ranks = true}},
    Condition{
        .option = "--ranks-per-cache",
        .value = "N",
        .help =
            "so many consecutive ranks share a cache, 1 to 1024: nested algorithms let data cross between caches as "
            "seldom as can be (default: what the machine shows where ranks have a core each; else they take about "
            "the square root of the ranks)",
        .example = "8",
        .read =
            [](Conditions& values, std::string_view text) {
              return store(parse_number(text, "a number of ranks", 1, 1024), values.topology.ranks_per_cache);
            },
        .text =
            [](const Conditions& values) {
              return unusual_number(values.topology.ranks_per_cache, kUsualTopology.ranks_per_cache);
            },
        .column = {.name = "ranks_per_cache",
                   .type = ConditionColumn::Type::integer,
                   .description = "consecutive ranks that share a cache, where an option or the machine said it",
                   .words = "{} ranks a cache",
                   .is_of_ranks = true}},
    Condition{
        .option = "--hosts",
        .value = "LIST",
        .help =
            "the ranks are on these machines, which --agent reaches: names or addresses with the number of "
            "ranks that each has room for, as in a:2,n[01-04]:8,[2001:db8::7]:2; each in its turn gets one more rank "
            "(default: this machine)",
        .example = "a:2,b:2",
        .read = [](Conditions& values, std::string_view text) -> Status {
          return store(parse_hosts(text), values.topology.hosts);
        },
        .text = [](const Conditions& values) { return to_text(values.topology.hosts); },
        .column = {.name = "hosts",
                   .description = "the machines that the ranks were on, each with the number of ranks that it has "
                                  "room for, where there were several",
                   .words = "hosts {}",
                   .is_of_ranks = true}},
};

/// Stops compiling where a field was added: each has a row.
[[maybe_unused]] void count_topology_fields(const TopologyOptions& values) {
  [[maybe_unused]] const auto& [v1, v2, v3, v4, v5, v6, v7, v8] = values;
  static_assert(std::tuple_size_v<decltype(kTopologyOptions)> == 8);
}

}  // namespace

std::string_view to_string(Bind bind) { return name_in(kBinds, bind); }
std::string_view to_string(RunsOn device) { return name_in(kDevices, device); }
Result<Bind> parse_bind(std::string_view text) { return parse_kind("binding", text, kBinds); }
Result<RunsOn> parse_runs_on(std::string_view text) { return parse_kind("device", text, kDevices); }

std::span<const Condition> topology_options() { return kTopologyOptions; }

}  // namespace tutti::harness::cases
