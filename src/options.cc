// SPDX-License-Identifier: Apache-2.0
#include "src/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <fmt/ranges.h>

#include "impl/algorithms/algorithm.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using harness::Sweep;

/// Stores a parser's value, or passes its Status on.
template <class T, class Target>
Status store(Result<T> parsed, Target& target) {
  TUTTI_ASSIGN_OR_RETURN(target, std::move(parsed));
  return {};
}

using Apply = Status (*)(Settings&, std::string_view, const Surroundings&);

struct Option {
  std::string_view name;
  std::string_view value;
  std::string_view fallback;  ///< empty: none
  std::string_view help;
  Apply apply;
};

Status set_backends(Settings& settings, std::string_view text, const Surroundings& around) {
  return store(parse_backends(text, around.known_backends), settings.sweep.backends);
}

/// The names in an id are checked here: the backend like one of --backends, the algorithm and the transport.
Status set_case(Settings& settings, std::string_view text, const Surroundings& around) {
  settings.case_id = text;
  TUTTI_ASSIGN_OR_RETURN(const harness::Case one, harness::parse_case_id(text));
  TUTTI_RETURN_IF_ERROR(set_backends(settings, one.backend, around));
  const std::string_view transport = one.ranks_as == harness::RanksAs::processes ? "shm" : "local";
  if (one.transport != transport) {
    return error(Code::invalid_argument, "case id '{}': transport '{}' with {}: did you mean '{}'?", text,
                 one.transport, to_string(one.ranks_as), transport);
  }
  if (one.backend == harness::kOwnBackend) return find_algorithm(one.collective, one.algorithm).status();
  if (one.algorithm == harness::kNone) return {};
  return error(Code::invalid_argument, "case id '{}': {} chooses its algorithm itself: did you mean '{}.{}'?", text,
               one.backend, one.backend, harness::kNone);
}

Status set_ranks(Settings& settings, std::string_view text, const Surroundings&) {
  settings.has_ranks = true;
  return store(harness::parse_ranks(text), settings.sweep.ranks);
}

#define TUTTI_SETS(parser, member)                                     \
  [](Settings& settings, std::string_view text, const Surroundings&) { \
    return store(harness::parser(text), settings.member);              \
  }

const std::array kOptions{
    Option{"--sizes", "LIST", harness::kDefaultSizes,
           "bytes: start:stop:xfactor, start:stop:+step or a list; K M G T are binary",
           TUTTI_SETS(parse_sizes, sweep.sizes)},
    Option{"--dtypes", "LIST", "float", "element types, or all", TUTTI_SETS(parse_dtypes, sweep.dtypes)},
    Option{"--ops", "LIST", "sum", "reductions, or all", TUTTI_SETS(parse_ops, sweep.ops)},
    Option{"--roots", "LIST", "0", "roots, or all", TUTTI_SETS(parse_roots, sweep.roots)},
    Option{"--ranks", "LIST", "", "numbers of ranks; 1:128 is every number between (default: cores, at most 8)",
           set_ranks},
    Option{"--ranks-as", "KIND", "processes", "what a rank is: processes, threads, tasks",
           TUTTI_SETS(parse_ranks_as, sweep.ranks_as)},
    Option{"--backends", "LIST", "all", "systems under test: tutti and the references found", set_backends},
    Option{"--algorithms", "LIST", "auto", "own algorithms by name, auto (the table's choice), or all",
           TUTTI_SETS(parse_algorithms, sweep.algorithms)},
    Option{"--placement", "LIST", "", "out, in (default: out; broadcast has one buffer: in)",
           TUTTI_SETS(parse_placements, sweep.placements)},
    Option{"--buffers", "LIST", "private", "private, or shared: memory that every rank of the node can address",
           TUTTI_SETS(parse_buffer_kinds, sweep.buffers)},
    Option{"--counts", "LIST", "equal",
           "lengths of the blocks of v forms: equal, ramp, one-heavy, zeros, random, or a FILE of P counts (P x P for "
           "all_to_all_v)",
           TUTTI_SETS(parse_counts_list, sweep.counts)},
    Option{"--cadence", "KIND", "isolated",
           "isolated: ranks synchronise before every sample; streaming: a sample is a loop of operations",
           TUTTI_SETS(parse_cadence, sweep.cadence)},
    Option{"--budget", "TIME", "", "time for the whole sweep: 30s, 4m (default: at most 3s a cell)",
           TUTTI_SETS(parse_duration, sweep.budget)},
    Option{"--timeout", "TIME", "60s", "deadline of an operation; then the late rank is named",
           TUTTI_SETS(parse_duration, sweep.timeout)},
    Option{"--launches", "N", "1", "times that everything is started afresh, cells in another seeded order each time",
           TUTTI_SETS(parse_launches, sweep.launches)},
    Option{"--bind", "KIND", "",
           "core: rank r to the r-th allowed core; numa: ranks in equal shares to the nodes; none (default: core where "
           "every rank has one)",
           TUTTI_SETS(parse_bind, sweep.bind)},
    Option{"--seed", "N", "1", "of inputs and of the order of samples",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             const char* end = text.data() + text.size();
             const auto [stop, failure] = std::from_chars(text.data(), end, settings.sweep.seed);
             if (failure == std::errc() && stop == end) return {};
             return error(Code::invalid_argument, "'{}' is not a seed: a whole number from 0 to 2^64-1, such as 1",
                          text);
           }},
    Option{"--case", "ID", "", "one case by its id, as the rows name it; takes the place of the sweep", set_case},
    Option{"--csv", "FILE", "", "write rows as they finish",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.csv = text;
             return {};
           }},
    Option{"--json", "FILE", "", "write the record: machine, versions, rows; valid at any moment",
           [](Settings& settings, std::string_view text, const Surroundings&) -> Status {
             settings.json = text;
             return {};
           }},
};
#undef TUTTI_SETS

/// Whether both name one file, which need not exist yet: by different spellings, or as links.
bool is_same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::equivalent(one, other, failure)) return true;
  const fs::path path = fs::weakly_canonical(fs::absolute(one, failure), failure);
  return path == fs::weakly_canonical(fs::absolute(other, failure), failure) && !failure;
}

bool is_wanted(const std::vector<std::string_view>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const Collective> all_but_v_forms() {
  const auto every = every_collective();
  const auto count = std::ranges::count_if(every, [](Collective collective) { return !has_counts(collective); });
  return every.first(static_cast<std::size_t>(count));
}

SweepOptions::SweepOptions(CLI::App& command, std::vector<std::string_view> names,
                           std::span<const Collective> otherwise)
    : otherwise_(otherwise) {
  std::string help = "collectives, or all (default: all";
  for (const Collective collective : otherwise.subspan(all_collectives().size())) {
    help += fmt::format(" and {}", to_string(collective));
  }
  command.add_option("COLLECTIVE", collectives_, help + ")")->type_name("");
  for (const Option& option : kOptions) {
    if (!is_wanted(names, option.name)) continue;
    const std::string name(option.name);
    CLI::Option* added =
        command.add_option(name, texts_[name], std::string(option.help))->type_name(std::string(option.value));
    const auto has_text = [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); };
    added->check(CLI::Validator(has_text, ""));
    if (!option.fallback.empty()) added->default_str(std::string(option.fallback));
  }
  if (is_wanted(names, "--require"))
    command.add_flag("--require", requires_, "exit with 3 where nothing could be measured");
}

Result<Settings> SweepOptions::settings(const Surroundings& surroundings) const {
  Settings settings;
  settings.requires_a_result = requires_;
  settings.sweep.collectives = {otherwise_.begin(), otherwise_.end()};
  if (!collectives_.empty()) {
    const std::string collectives = fmt::format("{}", fmt::join(collectives_, ","));
    TUTTI_ASSIGN_OR_RETURN(settings.sweep.collectives, harness::parse_collectives(collectives));
  }
  for (const Option& option : kOptions) {
    const auto given = texts_.find(std::string(option.name));
    if (given == texts_.end()) continue;
    const std::string_view text = given->second.empty() ? option.fallback : std::string_view(given->second);
    if (text.empty()) continue;
    const Status status = option.apply(settings, text, surroundings);
    if (!status.is_ok()) return error(status.code(), "{}: {}", option.name, status.message());
  }
  if (!settings.csv.empty() && !settings.json.empty() && is_same_file(settings.csv, settings.json)) {
    return error(Code::invalid_argument, "--csv and --json are both '{}': did you mean '{}.json' for --json?",
                 settings.csv, std::filesystem::path(settings.csv).replace_extension().string());
  }
  return settings;
}

}  // namespace tutti::program
