// SPDX-License-Identifier: Apache-2.0
// The sweep options, one table row each: name, value, default, help and what it sets. Flags, `--help` and error
// messages follow from the table; a subcommand names the rows that it takes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "harness/cases/conditions.h"
#include "harness/cases/suite.h"
#include "harness/cases/sweep.h"
#include "harness/text/streams.h"
#include "impl/types/status.h"
#include "src/jobs.h"

namespace tutti::program {

/// Everything that flags can set.
struct Settings {
  harness::Sweep sweep;
  bool has_ranks = false;  ///< --ranks was given
  bool has_seed = false;   ///< --seed was given
  std::string csv;
  std::string json;
  std::string samples;
  std::string flight;  ///< a folder
  std::string html;
  std::string prometheus;
  std::string case_id;
  std::string suite;                         ///< a file with the cells
  std::string table;                         ///< the file that --table names
  std::map<std::string, std::string> given;  ///< what the command line says of cells, by the keys of a suite
  std::string faults;                        ///< by name, of a trial of the verifier
  std::int64_t operations = 0;               ///< of a soak
  int seeds = 1;                             ///< mixes of a soak, from sweep.seed on
  bool requires_a_result = false;
  bool shows_accuracy = false;
  bool is_quiet = false;
  bool are_backends_named = false;  ///< by --backends or by a case's id
  harness::Conditions conditions;
  Reach reach;             ///< of conditions.topology.hosts, or of a job that a starter has started
  std::string init;        ///< where processes of several hosts meet (impl/bootstrap/init.h); empty: not chosen
  int expected_hosts = 0;  ///< of a job that a starter has started; 0: any number
};

/// What the table's parsers may look at besides the text.
struct Surroundings {
  std::vector<std::string> known_backends;  ///< tutti and the references found
  int most_ranks = harness::kMaxRanks;
  bool takes_table_variable = true;  ///< --table may come from TUTTI_TABLE
};

/// Where a command's text for people goes: stdout, but stderr where one of the files that were asked for is stdout, and
/// nowhere with --quiet.
[[nodiscard]] harness::Console console_for(const Settings& settings);

/// What the command line says for conditions that are not as usual: " --device host --lanes 2".
[[nodiscard]] std::string command_text(const harness::Conditions& conditions);

/// That a rank which is to be slow is one of so many. Errors: invalid_argument.
[[nodiscard]] Status check_slow_ranks(const harness::Conditions& conditions, int ranks);

/// The keys of a suite's sweep: the collectives and the options that say which cells there are.
[[nodiscard]] const std::vector<std::string>& suite_keys();
/// The sweep, defaults where it has no text; of what no key says, that of `base`, and its ranks where it names none.
/// Errors: invalid_argument naming its line.
[[nodiscard]] Result<harness::Sweep> sweep_of(const harness::Suite::Sweep& texts, const Settings& base);

/// Every collective that has blocks of one length: the v forms are those with others, and run where they are named.
[[nodiscard]] std::span<const Collective> all_but_v_forms();

/// A row of the table as a subcommand takes it: with another default or another help where these are not empty.
struct OptionChoice {
  OptionChoice(const char* option, std::string_view own_fallback = "", std::string_view own_help = "")  // NOLINT
      : name(option), fallback(own_fallback), help(own_help) {}

  std::string_view name;
  std::string_view fallback;
  std::string_view help;
};

/// The rows that say which hosts there are, and how they are reached.
[[nodiscard]] std::vector<OptionChoice> choices_of_hosts();
/// With the rows that say what the ranks of a check are and where they run, on several hosts too.
[[nodiscard]] std::vector<OptionChoice> with_places(std::vector<OptionChoice> choices);

/// Registers options and the positional collectives on `command`.
class SweepOptions {
 public:
  /// All rows of a sweep where `choices` is empty. `otherwise` are the collectives where the command line names no
  /// collective. Where `otherwise` is empty too, it takes no collectives.
  SweepOptions(CLI::App& command, std::vector<OptionChoice> choices,
               std::span<const Collective> otherwise = all_collectives());

  /// The settings, from what was parsed. Errors: invalid_argument, the message begins with the option.
  [[nodiscard]] Result<Settings> settings(const Surroundings& surroundings) const;

 private:
  Status settle_hosts(Settings& settings) const;
  Status settle_table(Settings& settings, const Surroundings& around) const;

  std::vector<std::string> collectives_;
  std::span<const Collective> otherwise_;
  std::vector<OptionChoice> choices_;
  std::map<std::string, std::string> texts_;  // by option name; empty where not given
  bool requires_ = false;
  bool shows_accuracy_ = false;
  bool is_quiet_ = false;
  std::map<std::string_view, bool> asked_;  // flags of conditions, by option name
};

}  // namespace tutti::program
