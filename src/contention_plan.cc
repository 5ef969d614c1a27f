// SPDX-License-Identifier: Apache-2.0
#include "src/contention_plan.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "harness/cases/groups.h"
#include "harness/cases/lists.h"
#include "harness/text/counted.h"
#include "src/program.h"

namespace tutti::program {
namespace {

struct NoMeaning {
  const char* option;
  std::string_view why;
};
constexpr std::array kNoMeaning{
    NoMeaning{"--trace", "whose calls have groups of their own"},
    NoMeaning{"--suite", "whose cells say nothing of groups"},
    NoMeaning{"--case", "which is one case: name its collective and its size in place of the id"},
    NoMeaning{"--samples", "which has the samples of all ranks together"},
    NoMeaning{"--overlap", "which is measured on all ranks together"},
    NoMeaning{"--hosts", "of ranks on several hosts: groups are of ranks on one host"},
    NoMeaning{"--hostfile", "of ranks on several hosts: groups are of ranks on one host"},
    NoMeaning{"--pretend-hosts", "of ranks on several hosts: groups are of ranks on one host"},
    NoMeaning{"--init", "of ranks on several hosts: groups are of ranks on one host"},
};

Status check_beside(const std::vector<harness::Dealt>& beside, const harness::Groups& groups,
                    const harness::Sweep& sweep) {
  if (beside.size() > static_cast<std::size_t>(groups.count - 1)) {
    return error(Code::invalid_argument, "--beside: it names {}, and beside the first group there {} {}",
                 harness::counted(beside.size(), "collective"), groups.count == 2 ? "is" : "are", groups.count - 1);
  }
  for (const harness::Dealt& dealt : beside) {
    if (!has_counts(dealt.collective)) continue;
    return error(Code::invalid_argument,
                 "--beside: the v form {} is no collective to run beside another: name one with "
                 "blocks of one length",
                 to_string(dealt.collective));
  }
  if (!beside.empty() && (sweep.algorithms.size() != 1 || sweep.algorithms.front() != harness::kAuto)) {
    return error(Code::invalid_argument,
                 "--algorithms: '{}' has no meaning with --beside, whose collectives have algorithms of their own: did "
                 "you mean --algorithms auto?",
                 fmt::join(sweep.algorithms, ","));
  }
  return {};
}

}  // namespace

void add_contention_options(CLI::App& command, ContentionOptions& options) {
  command
      .add_option("--groups", options.groups,
                  "contention: groups of the ranks run at once, and each of them alone, in turn; a row for each, with "
                  "the slowdown. 2x4: two groups of four neighbours; MOD:2: rank r is in group r mod 2")
      ->type_name("GROUPS");
  command
      .add_option("--beside", options.beside,
                  "with --groups: what the groups after the first run, in turn, such as broadcast or "
                  "all_to_all:1M,barrier; without a size that of the first group (default: the same as the first)")
      ->type_name("LIST");
}

Status settle_groups(const ContentionOptions& options, const CLI::App& command, Settings& settings) {
  if (options.groups.empty()) {
    if (command.count("--groups") > 0) return error(Code::invalid_argument, "--groups: the value is empty");
    if (command.count("--beside") == 0) return {};
    return error(Code::invalid_argument, "--beside: has no meaning without --groups; leave --beside out");
  }
  for (const NoMeaning& other : kNoMeaning) {
    if (command.count(other.option) == 0) continue;
    return error(Code::invalid_argument, "--groups: has no meaning with {}, {}; leave one of the two out", other.option,
                 other.why);
  }
  harness::Sweep& sweep = settings.sweep;
  TUTTI_ASSIGN_OR_RETURN(sweep.groups, of_flag("--groups", harness::parse_groups(options.groups)));
  if (settings.reach.joined != nullptr) {
    return error(Code::invalid_argument,
                 "--groups: {} has started these ranks, and groups are of ranks that tutti "
                 "starts: leave --groups out",
                 settings.reach.joined->starter);
  }
  if (sweep.ranks_as->is_on_device || sweep.ranks_as->ranks_of_runner != 1) {
    return error(Code::invalid_argument,
                 "--groups: one thread calls for all ranks as {}, and groups run at once: did you mean --ranks-as "
                 "processes?",
                 to_string(sweep.ranks_as));
  }
  if (settings.conditions.sync == harness::Synchronisation::library) {
    return error(Code::invalid_argument,
                 "--sync: 'library' has no meaning with --groups, whose groups have a barrier each: did you mean "
                 "--sync dissemination?");
  }
  if (sweep.groups.kind == harness::Groups::Kind::adjacent && !settings.has_ranks) {
    sweep.ranks = {sweep.groups.count * sweep.groups.ranks_of_each};
    settings.has_ranks = true;
  }
  for (const int ranks : sweep.ranks) {
    if (const Status fits = harness::check_groups(sweep.groups, ranks); !fits.is_ok()) {
      return error(fits.code(), "--groups: {}", fits.message());
    }
  }
  if (!options.beside.empty()) {
    TUTTI_ASSIGN_OR_RETURN(sweep.beside, of_flag("--beside", harness::parse_beside(options.beside)));
  } else if (command.count("--beside") > 0) {
    return error(Code::invalid_argument, "--beside: the value is empty");
  }
  if (std::ranges::find(sweep.algorithms, harness::kAuto) != sweep.algorithms.end() && sweep.algorithms.size() > 1) {
    return error(
        Code::invalid_argument,
        "--algorithms: 'auto' stands alone with --groups, whose groups may choose different ones: did you mean "
        "--algorithms auto?");
  }
  settings.conditions.has_limit = false;  // of what all ranks together can move
  return check_beside(sweep.beside, sweep.groups, sweep);
}

}  // namespace tutti::program
