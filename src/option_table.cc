// SPDX-License-Identifier: Apache-2.0
#include "src/option_table.h"

#include <array>
#include <limits>

#include "harness/cases/compositions.h"
#include "harness/cases/kinds.h"
#include "harness/cases/transports.h"
#include "harness/faults/fault.h"
#include "harness/text/read_file.h"
#include "impl/algorithms/algorithm.h"
#include "impl/bootstrap/init.h"
#include "impl/communicator/selection.h"
#include "impl/types/host_list.h"
#include "impl/types/host_name.h"
#include "impl/types/number.h"
#include "src/references.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::store;

/// If it is `all`, the code that runs them chooses.
Status set_backends(Settings& settings, std::string_view text, const Surroundings& around) {
  if (text == "all") return {};
  settings.are_backends_named = true;
  return store(parse_backends(text, around.known_backends), settings.sweep.backends);
}

/// The names in an id are checked here: the backend like one of --backends, the algorithm and the transport.
Status set_case(Settings& settings, std::string_view text, const Surroundings& around) {
  settings.case_id = text;
  TUTTI_ASSIGN_OR_RETURN(const harness::Case one, harness::parse_case_id(text));
  if (one.among.is_any()) {
    return error(
        Code::invalid_argument,
        "'{}' is one group of a contention, which runs with the others: did you mean `tutti run {} --groups {}`?", text,
        to_string(one.collective), one.among.groups);
  }
  TUTTI_RETURN_IF_ERROR(set_backends(settings, one.backend, around));
  const Status transport = harness::transport_for(one.transport, one.ranks_as, transport_directories()).status();
  if (!transport.is_ok()) return error(transport.code(), "case id '{}': {}", text, transport.message());
  const bool is_own = harness::backend_of(one.backend) == harness::kOwnBackend;
  if (is_own && !harness::is_composition(one.backend)) return find_tuned(one.collective, one.algorithm).status();
  if (one.algorithm == harness::kNone) return {};
  return error(Code::invalid_argument, "case id '{}': {} chooses its algorithm itself: did you mean '{}.{}'?", text,
               one.backend, one.backend, harness::kNone);
}

Status set_ranks(Settings& settings, std::string_view text, const Surroundings& around) {
  settings.has_ranks = true;
  return store(harness::parse_ranks(text, around.most_ranks), settings.sweep.ranks);
}

Status set_algorithms(Settings& settings, std::string_view text, const Surroundings& /*around*/) {
  return store(harness::parse_algorithms(text, settings.sweep.collectives), settings.sweep.algorithms);
}

/// `7`, or `1:200` for that many mixes.
Status set_seed(Settings& settings, std::string_view text) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kMostMixes = 1'000'000;
  const std::size_t colon = text.find(':');
  TUTTI_ASSIGN_OR_RETURN(settings.sweep.seed, parse_number<std::uint64_t>(text.substr(0, colon), "a seed", 0, kMost));
  if (colon == text.npos) return {};
  TUTTI_ASSIGN_OR_RETURN(const std::uint64_t last,
                         parse_number<std::uint64_t>(text.substr(colon + 1), "a seed", 0, kMost));
  const std::uint64_t first = settings.sweep.seed;
  if (last < first || last - first >= kMostMixes) {
    return error(Code::invalid_argument, "'{}' is not FIRST:LAST of 1 to {} seeds, such as 1:200", shown(text),
                 kMostMixes);
  }
  settings.seeds = static_cast<int>(last - first + 1);
  return {};
}

constexpr std::string_view kUsualWindowText = "64";
static_assert(kUsualWindow == 64);

#define TUTTI_SETS(parser, member)                                     \
  [](Settings& settings, std::string_view text, const Surroundings&) { \
    return store(harness::parser(text), settings.member);              \
  }

const std::array kSweepOptions{
    Option{"--sizes", "LIST", harness::kDefaultSizes,
           "bytes: start:stop:xfactor, start:stop:+step or a list; K M G T, also as KB or KiB, are binary. A size is "
           "rounded down to whole elements, the same number in every block, but runs at least one; 0 runs none",
           TUTTI_SETS(parse_sizes, sweep.sizes)},
    Option{"--dtypes", "LIST", "float", "element types, or all", TUTTI_SETS(parse_dtypes, sweep.dtypes)},
    Option{"--ops", "LIST", "sum", "reductions, or all", TUTTI_SETS(parse_ops, sweep.ops)},
    Option{"--roots", "LIST", "0", "roots, or all", TUTTI_SETS(parse_roots, sweep.roots)},
    Option{"--ranks", "LIST", "", "numbers of ranks; 1:128 is every number between (default: cores, at most 8)",
           set_ranks},
    Option{"--ranks-as", "KIND", "processes",
           "what a rank is: processes, threads, tasks, blocks (thread blocks of a GPU)",
           TUTTI_SETS(parse_ranks_as, sweep.ranks_as)},
    Option{
        "--backends", "LIST", "all",
        "systems under test: tutti and the references found, in the folders that TUTTI_BACKENDS names (colons between) "
        "and beside the program; tutti,tutti holds it against itself; 'NAME{coll=^han;btl=self,vader}' is NAME with "
        "settings of its library, a system beside the one without",
        set_backends},
    Option{"--algorithms", "LIST", "auto", "own algorithms by name, auto (the table's choice), or all", set_algorithms},
    Option{"--transports", "LIST", "",
           "how bytes move between ranks: names of `tutti list`, which looks for shared objects in the folders that "
           "TUTTI_TRANSPORTS names and beside the program (default: the best for --ranks-as)",
           TUTTI_SETS(parse_transports, sweep.transports)},
    Option{"--hostfile", "FILE", "",
           "as --hosts: a line for each machine, its name and the number of ranks it has room for: `a 2`, "
           "`a:2`, `a slots=2`",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             TUTTI_ASSIGN_OR_RETURN(const std::string lines,
                                    harness::read_file(std::string(text), harness::kMostInList));
             auto hosts = parse_hostfile(lines);
             if (!hosts.is_ok()) return error(hosts.status().code(), "'{}': {}", text, hosts.status().message());
             settings.conditions.topology.hosts = std::move(hosts).value();
             return {};
           }},
    Option{"--agent", "CMD", "ssh",
           "with --hosts: what starts a command on another machine, called as `CMD HOST COMMAND...`, with what the "
           "command reads on stdin",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.reach.agent = text;
             return {};
           }},
    Option{"--interface", "ADDRESS", "",
           "with --hosts, or in a job on several hosts: the address, or the name of the interface, at which this "
           "machine is reached (default: TUTTI_INTERFACE, or that of the route to the others); a name holds on each of "
           "them; with --transports verbs, whose RDMA device is used",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             TUTTI_RETURN_IF_ERROR(check_interface(text));
             settings.reach.interface = text;
             return {};
           }},
    Option{
        "--init", "URL", "",
        "where this process meets the others of a job that mpirun, srun, torchrun or a script has started on several "
        "hosts: env:// (MASTER_ADDR and TUTTI_PORT), tcp://HOST:PORT of rank 0, or file://PATH that all can read "
        "(default: TUTTI_INIT, or env://)",
        [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
          settings.init = text;
          return init_from(text, environment_here()).status();
        }},
    Option{"--placement", "LIST", "", "out, in (default: out; broadcast has one buffer: in)",
           TUTTI_SETS(parse_placements, sweep.placements)},
    Option{"--buffers", "LIST", "private", "private, or shared: memory that every rank of the node can address",
           TUTTI_SETS(parse_buffer_kinds, sweep.buffers)},
    Option{"--counts", "LIST", "equal",
           "lengths of the blocks of v forms: equal, ramp, one-heavy, zeros, random, which share out --sizes; zipf, "
           "rotating, burst, empty, traffic of a mixture of experts that --seed draws; or, in the place of --sizes, a "
           "FILE "
           "of P counts of elements (P x P for all_to_all_v)",
           TUTTI_SETS(parse_counts_list, sweep.counts)},
    Option{"--window", "LIST", kUsualWindowText,
           "of bandwidth, bibandwidth and message_rate: messages in one operation, 1 to 1024; the time is the whole "
           "window's, a message's share is time / window",
           TUTTI_SETS(parse_windows, sweep.windows)},
    Option{"--pairs", "LIST", harness::kNeighbours,
           "of pingpong, bandwidth and bibandwidth: neighbours (ranks 0 and 1, 2 and 3, ... at once), all (a row for "
           "every pair, the other ranks idle), or pairs such as 0-1,0-3",
           TUTTI_SETS(parse_pairs, sweep.pairs)},
    Option{"--counts-unit", "UNIT", "elements",
           "what the numbers of --counts FILE are: elements, or bytes, each a multiple of an element",
           TUTTI_SETS(parse_counts_unit, sweep.counts_unit)},
    Option{"--cadence", "KIND", "isolated",
           "isolated: ranks synchronise before every sample; streaming: a sample is a loop of operations",
           TUTTI_SETS(parse_cadence, sweep.cadence)},
    Option{
        "--budget", "TIME", "",
        "time for the whole sweep: 30s, 4m; cells that cannot be begun in it are skipped (default: at most 3s a cell)",
        TUTTI_SETS(parse_duration, sweep.budget)},
    Option{"--timeout", "TIME", "60s", "deadline of an operation; then the late rank is named",
           TUTTI_SETS(parse_timeout, sweep.timeout)},
    Option{"--launches", "N", "1", "times that everything is started afresh, cells in another seeded order each time",
           TUTTI_SETS(parse_launches, sweep.launches)},
    Option{"--seed", "N", "1", "of inputs and of the order of samples",
           [](Settings& settings, std::string_view text, const Surroundings&) { return set_seed(settings, text); }},
    Option{"--operations", "N", "10000", "how many, on all communicators together",
           [](Settings& settings, std::string_view text, const Surroundings&) {
             constexpr std::int64_t kMost = 100'000'000;  // barriers are kept until they are judged
             return store(parse_number<std::int64_t>(text, "a number of operations", 1, kMost), settings.operations);
           },
           true},
    Option{"--case", "ID", "", "one case by its id, as the rows name it; takes the place of the sweep", set_case},
    Option{"--faults", "LIST", "",
           "the verifier on trial: put these faults (`tutti list` names them, or all) into right collectives and see "
           "each found; then all collectives are every one of `tutti list`, --ranks are 4, --dtypes one of each class, "
           "--ops sum, and tasks take turns",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             TUTTI_RETURN_IF_ERROR(harness::parse_faults(text).status());
             settings.faults = text;
             return {};
           },
           true},
    Option{"--csv", "FILE", "", "write rows as they finish; -: to stdout, and what else goes there to stderr",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.csv = text;
             return {};
           }},
    Option{"--json", "FILE", "",
           "write the record: machine, versions, rows; valid at any moment; -: to stdout, at the end",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.json = text;
             return {};
           }},
    Option{"--suite", "FILE", "", "cells from a TOML file, as of `tutti gate`; what the command line says wins",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.suite = text;
             return {};
           }},
    Option{"--samples", "FILE", "", "write every timed sample of every case, as CSV; -: to stdout",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.samples = text;
             return {};
           }},
    Option{"--flight", "FOLDER", "",
           "after a hang of tutti's own collectives, write each rank's last operations for torch's fr_trace, and "
           "stacks",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.flight = text;
             return {};
           }},
    Option{"--prometheus", "FILE", "", "write metrics as text at the end, with the names of NCCL's Inspector",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.prometheus = text;
             return {};
           }},
    Option{"--html", "FILE", "", "draw one page of the result, at the end; `tutti report` does so later from --json",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.html = text;
             return {};
           }},
};
#undef TUTTI_SETS

}  // namespace

const std::vector<Option>& all_options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> options(kSweepOptions.begin(), kSweepOptions.end());
    for (const harness::Condition& condition : harness::conditions()) {
      options.push_back({.name = condition.option,
                         .value = condition.value,
                         .fallback = condition.usual,
                         .help = condition.help,
                         .condition = &condition});
    }
    return options;
  }();
  return all;
}

}  // namespace tutti::program
