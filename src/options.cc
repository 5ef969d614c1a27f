// SPDX-License-Identifier: Apache-2.0
#include "src/options.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include "harness/cases/kinds.h"
#include "harness/cases/transports.h"
#include "harness/machine/allowed_cores.h"
#include "harness/machine/caches.h"
#include "harness/text/file.h"
#include "impl/types/host_list.h"
#include "impl/types/number.h"
#include "src/option_table.h"
#include "src/program.h"
#include "src/transports.h"

namespace tutti::program {
namespace {

using harness::store;

/// That no two options name one file.
Status check_all_apart(const Settings& settings) {
  const std::array<std::pair<harness::FileOption, std::string_view>, 5> files{
      {{{"--csv", settings.csv}, ".csv"},
       {{"--json", settings.json}, ".json"},
       {{"--samples", settings.samples}, ".samples.csv"},
       {{"--prometheus", settings.prometheus}, ".prom"},
       {{"--html", settings.html}, ".html"}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      TUTTI_RETURN_IF_ERROR(harness::check_apart(files[j].first, files[i].first, files[i].second));
    }
  }
  return {};
}

/// As `choices` have it; null where they leave it out. Where `choices` is empty, every row of a sweep.
const OptionChoice* find_choice(const std::vector<OptionChoice>& choices, std::string_view name) {
  const auto found = std::ranges::find(choices, name, &OptionChoice::name);
  return found == choices.end() ? nullptr : &*found;
}

std::string_view fallback_of(const Option& option, const OptionChoice* choice) {
  return choice != nullptr && !choice->fallback.empty() ? choice->fallback : option.fallback;
}

/// What was asked for and has no meaning for any of the collectives. Errors: invalid_argument.
Status check_collectives(const std::vector<Collective>& collectives, const std::map<std::string, std::string>& texts) {
  struct Verb {
    const char* of_one;
    const char* of_many;
  };
  constexpr Verb kHas{"has", "have"};
  constexpr Verb kIs{"is", "are"};
  struct Meaning {
    std::string_view option;
    bool (*is_there)(Collective);
    Verb verb;
    std::string_view what;
  };
  constexpr std::array kMeanings{
      Meaning{"--sizes", has_data, kHas, "no data"},
      Meaning{"--dtypes", has_data, kHas, "no data"},
      Meaning{"--ops", is_reducing, kHas, "no op"},
      Meaning{"--roots", is_rooted, kHas, "no root"},
      Meaning{"--placement", has_data, kHas, "no data"},
      Meaning{"--buffers", has_data, kHas, "no data"},
      Meaning{"--counts", has_counts, kHas, "blocks of one length"},
      Meaning{"--window", has_window, kHas, "no window"},
      Meaning{"--pairs", has_pairs, kIs, "not played by one pair"},
  };
  std::vector<Meaning> meanings(kMeanings.begin(), kMeanings.end());
  for (const harness::Condition& condition : harness::conditions()) {
    if (condition.has_meaning != nullptr)
      meanings.push_back({condition.option, condition.has_meaning, kHas, condition.lacks});
  }
  for (const Meaning& meaning : meanings) {
    const auto given = texts.find(std::string(meaning.option));
    if (given == texts.end() || given->second.empty()) continue;
    if (std::ranges::any_of(collectives, meaning.is_there)) continue;
    std::vector<std::string_view> names;
    for (const Collective collective : collectives) names.push_back(to_string(collective));
    return error(Code::invalid_argument, "{0}: {1} {2} {3}; leave {0} out", meaning.option, fmt::join(names, ", "),
                 names.size() == 1 ? meaning.verb.of_one : meaning.verb.of_many, meaning.what);
  }
  return {};
}

/// What a case's id says too. Counts are beside it where they are a file's, which an id names by its hash.
/// Errors: invalid_argument.
Status check_beside_case(const harness::Case& one, const std::map<std::string, std::string>& texts) {
  for (const auto& [name, text] : texts) {
    const bool is_said = name == "--backends" || std::ranges::find(suite_keys(), name.substr(2)) != suite_keys().end();
    const bool is_file = name == "--counts" && one.counts.pattern == harness::Pattern::file;
    if (text.empty() || !is_said || is_file) continue;
    return error(Code::invalid_argument, "{0}: has no meaning with --case, whose id says it; leave {0} out", name);
  }
  return {};
}

/// A file's counts are lengths themselves: nothing shares out --sizes. Errors: invalid_argument.
Status check_counts(const harness::Sweep& sweep, const std::map<std::string, std::string>& texts) {
  const auto is_given = [&](const char* name) {
    const auto text = texts.find(name);
    return text != texts.end() && !text->second.empty();
  };
  const auto is_file = [](const harness::Counts& counts) { return counts.pattern == harness::Pattern::file; };
  if (is_given("--counts-unit") && std::ranges::none_of(sweep.counts, is_file)) {
    return error(Code::invalid_argument, "--counts-unit: has no meaning without --counts FILE; leave it out");
  }
  if (!is_given("--sizes") || !std::ranges::all_of(sweep.counts, is_file)) return {};
  if (!std::ranges::all_of(sweep.collectives, has_counts)) return {};
  return error(
      Code::invalid_argument,
      "--sizes: has no meaning with --counts {}, whose numbers are the lengths of the blocks; leave one of the "
      "two out",
      texts.at("--counts"));
}

/// That the rank, or the link, that is to be slow is on one host, where threads of the ranks move all bytes. Errors:
/// invalid_argument.
Status check_slowed(const harness::Conditions& conditions, const std::vector<harness::Topology>& topologies) {
  if (!conditions.is_slowed()) return {};
  const char* const option = conditions.slow_rank.rank >= 0 ? "--slow-rank" : "--slow-link";
  for (const harness::Topology& one : topologies) {
    if (!one.spans_hosts() && !one.on_devices()) continue;
    return error(Code::invalid_argument,
                 "{0}: with transport {1} {2}, which cannot be slowed: leave {0} out, or run on one host with "
                 "--transports shm",
                 option, one.transport->name,
                 one.spans_hosts() ? "bytes go between several hosts" : "kernels on a device move the bytes");
  }
  return {};
}

/// Ranks of this machine that are bound to a core each share the caches of their cores.
void settle_caches(Settings& settings) {
  harness::TopologyOptions& topology = settings.conditions.topology;
  const bool has_cores = topology.bind.value_or(harness::Bind::core) == harness::Bind::core;
  if (topology.ranks_per_cache > 0 || !has_cores || !topology.hosts.empty() || settings.reach.joined != nullptr) return;
  topology.ranks_per_cache = harness::cores_per_cache(harness::Tree("/"), harness::allowed_cores());
}

/// What was asked for and has no meaning beside the rest. Errors: invalid_argument.
Status check_meaning(const Settings& settings, const std::map<std::string, std::string>& texts) {
  harness::Sweep sweep = settings.sweep;
  if (!settings.case_id.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const harness::Case one, harness::parse_case_id(settings.case_id));
    TUTTI_RETURN_IF_ERROR(check_beside_case(one, texts));
    sweep.collectives = {one.collective};
    sweep.cadence = one.cadence;
    sweep.ranks_as = one.ranks_as;
    sweep.dtypes.values = {one.dtype};
    sweep.ranks = {one.ranks};
    sweep.transports = {one.transport};
  }
  TUTTI_RETURN_IF_ERROR(check_collectives(sweep.collectives, texts));
  if (const Status there = check_transports(sweep); !there.is_ok()) {
    return error(there.code(), "--transports: {}", there.message());
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<harness::Topology> topologies, topologies_of(sweep, settings.conditions));
  TUTTI_RETURN_IF_ERROR(check_counts(sweep, texts));
  TUTTI_RETURN_IF_ERROR(check_slowed(settings.conditions, topologies));
  TUTTI_RETURN_IF_ERROR(check_conditions(
      settings.conditions,
      {.cadence = sweep.cadence, .ranks_as = sweep.ranks_as, .timeout = sweep.timeout, .dtypes = sweep.dtypes.values}));
  return check_devices(topologies);
}

}  // namespace

Status check_slow_ranks(const harness::Conditions& conditions, int ranks) {
  const auto& [slow_rank, slow_link] = std::tie(conditions.slow_rank, conditions.slow_link);
  for (const auto& [option, rank] :
       {std::pair("--slow-rank", slow_rank.rank), std::pair("--slow-link", slow_link.second)}) {
    if (rank < ranks) continue;
    return error(Code::invalid_argument, "{}: there is no rank {} of {}: allowed are 0 to {}", option, rank, ranks,
                 ranks - 1);
  }
  return {};
}

std::span<const Collective> all_but_v_forms() {
  static const std::vector<Collective> kThose = [] {
    std::vector<Collective> those;
    std::ranges::copy_if(every_collective(), std::back_inserter(those),
                         [](Collective collective) { return !has_counts(collective); });
    return those;
  }();
  return kThose;
}

std::vector<OptionChoice> choices_of_hosts() {
  return {{"--hosts"},
          {"--hostfile"},
          {"--agent"},
          {"--interface", "",
           "with --hosts: the address, or the name of the interface, at which this machine is reached (default: "
           "TUTTI_INTERFACE, or that of the route to the others); a name holds on each of them"}};
}

std::vector<OptionChoice> with_places(std::vector<OptionChoice> choices) {
  for (const char* const name :
       {"--ranks-as", "--device", "--lanes", "--block-threads", "--gpus", "--transports", "--pretend-hosts",
        "--ranks-per-cache", "--hosts", "--hostfile", "--agent", "--interface", "--init"}) {
    choices.emplace_back(name);
  }
  return choices;
}

SweepOptions::SweepOptions(CLI::App& command, std::vector<OptionChoice> choices, std::span<const Collective> otherwise)
    : otherwise_(otherwise), choices_(std::move(choices)) {
  if (!otherwise.empty()) {
    const bool has_all = otherwise.size() >= all_collectives().size();
    std::string help = has_all ? "collectives, or all (default: all" : "collectives, or all (default: all of these:";
    for (const Collective collective : otherwise.subspan(has_all ? all_collectives().size() : 0)) {
      help += fmt::format(" {}{}", has_all ? "and " : "", to_string(collective));
    }
    command.add_option("COLLECTIVE", collectives_, help + ")")->type_name("");
  }
  for (const Option& option : all_options()) {
    const OptionChoice* const choice = find_choice(choices_, option.name);
    if (choice == nullptr && (!choices_.empty() || option.is_of_check)) continue;
    const std::string name(option.name);
    const std::string help(choice != nullptr && !choice->help.empty() ? choice->help : option.help);
    if (option.is_flag()) {
      command.add_flag(name, asked_[option.name], help);
      continue;
    }
    CLI::Option* added = command.add_option(name, texts_[name], help)->type_name(std::string(option.value));
    const auto has_text = [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); };
    added->check(CLI::Validator(has_text, ""));
    if (option.help.empty()) added->group("");
    if (const auto fallback = fallback_of(option, choice); !fallback.empty()) added->default_str(std::string(fallback));
  }
  if (!choices_.empty()) return;
  command.add_flag("--require", requires_, "exit with 3 where nothing could be measured");
  command.add_flag("--accuracy", shows_accuracy_,
                   "shows below each row the error of float reductions, in ulp, and whether all ranks and repetitions "
                   "had the same bits; JSON and CSV always have them");
  command.add_flag("--quiet", is_quiet_, "no table and no progress: errors, the files and the exit code");
}

harness::Console console_for(const Settings& settings) {
  if (settings.is_quiet) return harness::Console(harness::Console::Place::nowhere);
  const auto is_stdout = [](const std::string& path) { return path == harness::kStdoutPath; };
  return harness::Console::beside(is_stdout(settings.csv) || is_stdout(settings.json) || is_stdout(settings.samples));
}

std::string command_text(const harness::Conditions& conditions) {
  std::string text;
  for (const harness::Condition& condition : harness::conditions()) {
    const std::string value = condition.text(conditions);
    if (value == condition.usual) continue;
    if (value.find('\n') != value.npos) {  // of a file: its name, and what it holds
      text += fmt::format(" {} {}", condition.option, value.substr(0, value.find('\n')));
      continue;
    }
    text +=
        condition.value.empty() ? fmt::format(" {}", condition.option) : fmt::format(" {} {}", condition.option, value);
  }
  return text;
}

const std::vector<std::string>& suite_keys() {
  static const std::vector<std::string> keys{"collectives", "sizes",    "dtypes",     "ops",       "roots",
                                             "ranks",       "ranks-as", "algorithms", "placement", "buffers",
                                             "counts",      "cadence",  "window",     "pairs",     "transports"};
  return keys;
}

Result<harness::Sweep> sweep_of(const harness::Suite::Sweep& texts, const Settings& base) {
  Settings settings = base;
  settings.sweep.collectives = {all_collectives().begin(), all_collectives().end()};
  const auto at_line = [&](const Status& status, std::string_view key) {
    return error(status.code(), "line {}: {}: {}", texts.line, key, status.message());
  };
  if (const auto names = texts.texts.find("collectives"); names != texts.texts.end()) {
    const Status status = store(harness::parse_collectives(names->second), settings.sweep.collectives);
    if (!status.is_ok()) return at_line(status, names->first);
  }
  for (const Option& option : all_options()) {
    const std::string key(option.name.substr(2));
    if (std::ranges::find(suite_keys(), key) == suite_keys().end()) continue;
    const auto given = texts.texts.find(key);
    const std::string_view text = given == texts.texts.end() ? option.fallback : std::string_view(given->second);
    if (text.empty()) continue;
    if (const Status status = option.set(settings, text, {}); !status.is_ok()) return at_line(status, key);
  }
  if (const Status status = check_transports(settings.sweep); !status.is_ok()) return at_line(status, "transports");
  const auto topologies = topologies_of(settings.sweep, settings.conditions);
  if (!topologies.is_ok()) return at_line(topologies.status(), "ranks");
  TUTTI_RETURN_IF_ERROR(check_devices(topologies.value()));
  return settings.sweep;
}

/// What --hosts leaves unsaid. Errors: invalid_argument for what has no meaning without it.
Status SweepOptions::settle_hosts(Settings& settings) const {
  const auto is_given = [&](const char* name) {
    const auto text = texts_.find(name);
    return text != texts_.end() && !text->second.empty();
  };
  if (is_given("--hosts") && is_given("--hostfile")) {
    return error(Code::invalid_argument, "--hostfile: has no meaning with --hosts; leave one of the two out");
  }
  if (texts_.contains("--init") && is_given("--hosts")) {
    if (const auto number = parse_number(texts_.at("--hosts"), "", 1, harness::kMaxRanks); number.is_ok()) {
      settings.expected_hosts = number.value();
      settings.conditions.topology.hosts.clear();
    }
  }
  if (settings.conditions.topology.hosts.empty()) {
    if (!is_given("--agent")) return {};
    return error(Code::invalid_argument, "--agent: has no meaning without --hosts; leave --agent out");
  }
  const int slots = slots_of(settings.conditions.topology.hosts);
  if (settings.reach.interface.empty()) {
    TUTTI_ASSIGN_OR_RETURN(settings.reach.interface, interface_from(environment_here()));
  }
  if (!is_given("--ranks") && settings.case_id.empty()) {
    if (slots > harness::kMaxRanks) {
      return error(Code::invalid_argument,
                   "--hosts: the hosts have room for {0} ranks, and a job has 1 to {1}: did you "
                   "mean --ranks {1}?",
                   slots, harness::kMaxRanks);
    }
    settings.sweep.ranks = {slots};
    settings.has_ranks = true;
  }
  if (!is_given("--transports") && settings.case_id.empty()) {
    settings.sweep.transports = {harness::transport_between_hosts().name};
  }
  return {};
}

/// TUTTI_TABLE, where the command has --table and it is not given.
Status SweepOptions::settle_table(Settings& settings, const Surroundings& around) const {
  const auto given = texts_.find("--table");
  if (given == texts_.end() || !given->second.empty() || !around.takes_table_variable) return {};
  const std::optional<std::string> path = environment_here()(harness::kTableVariable);
  if (!path) return {};
  const Status status = harness::condition_of_option("--table")->read(settings.conditions, *path);
  return status.is_ok() ? status : error(status.code(), "{}: {}", harness::kTableVariable, status.message());
}

Result<Settings> SweepOptions::settings(const Surroundings& surroundings) const {
  Settings settings;
  settings.requires_a_result = requires_;
  settings.shows_accuracy = shows_accuracy_;
  settings.is_quiet = is_quiet_;
  settings.sweep.collectives = {otherwise_.begin(), otherwise_.end()};
  if (!collectives_.empty()) {
    const std::string collectives = fmt::format("{}", fmt::join(collectives_, ","));
    TUTTI_ASSIGN_OR_RETURN(settings.sweep.collectives, harness::parse_collectives(collectives));
  }
  if (const auto table = texts_.find("--table"); table != texts_.end()) settings.table = table->second;
  settings.has_seed = texts_.contains("--seed") && !texts_.at("--seed").empty();
  for (const auto& [option, is_asked] : asked_) {
    if (is_asked)
      TUTTI_RETURN_IF_ERROR(harness::condition_of_option(option)->read(settings.conditions, harness::kAsked));
  }
  for (const Option& option : all_options()) {
    const auto given = texts_.find(std::string(option.name));
    if (given == texts_.end()) continue;
    const std::string_view text = given->second.empty() ? fallback_of(option, find_choice(choices_, option.name))
                                                        : std::string_view(given->second);
    if (text.empty()) continue;
    const Status status = option.set(settings, text, surroundings);
    if (!status.is_ok()) return error(status.code(), "{}: {}", option.name, status.message());
  }
  TUTTI_RETURN_IF_ERROR(settle_table(settings, surroundings));
  if (!settings.case_id.empty() && !collectives_.empty()) {
    return error(Code::invalid_argument, "--case: its id says which collective runs; leave {} out",
                 fmt::join(collectives_, " "));
  }
  if (!settings.case_id.empty() && !settings.suite.empty()) {
    return error(Code::invalid_argument,
                 "--suite: has no meaning with --case, which is one cell; leave one of the two out");
  }
  if (!collectives_.empty()) settings.given["collectives"] = fmt::format("{}", fmt::join(collectives_, ","));
  for (const std::string& key : suite_keys()) {
    const auto given = texts_.find("--" + key);
    if (given != texts_.end() && !given->second.empty()) settings.given[key] = given->second;
  }
  if (settings.seeds > 1 && !texts_.contains("--operations")) {
    return error(Code::invalid_argument, "--seed: several are for `tutti check soak`: did you mean --seed {}?",
                 settings.sweep.seed);
  }
  TUTTI_RETURN_IF_ERROR(settle_hosts(settings));
  TUTTI_RETURN_IF_ERROR(check_meaning(settings, texts_));
  settle_caches(settings);
  TUTTI_RETURN_IF_ERROR(check_all_apart(settings));
  return settings;
}

}  // namespace tutti::program
