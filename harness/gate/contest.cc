// SPDX-License-Identifier: Apache-2.0
#include "harness/gate/contest.h"

#include <algorithm>

#include "harness/cases/suite.h"
#include "harness/gate/baseline.h"

namespace tutti::harness::gate {
namespace {

void append_of_case(const Case& one, const std::vector<Row>& rows, std::vector<Row>& target) {
  for (const Row& row : rows) {
    if (is_of_case(one, row.case_id)) target.push_back(row);
  }
}

bool is_excluded(const Evidence& evidence) {
  return !evidence.wrong.empty() || !evidence.missing.empty() || !evidence.invalid.empty();
}

}  // namespace

Evidence evidence_for(const Case& one) {
  return {.cell = cell_id(one), .collective = std::string(to_string(one.collective)), .bytes = one.bytes};
}

Contest::Contest(std::vector<Case> cases, std::vector<Evidence> begun, ContestOptions options)
    : cases_(std::move(cases)), evidence_(std::move(begun)), options_(std::move(options)), random_(options_.seed) {
  TUTTI_ASSERT(cases_.size() == evidence_.size(), "{} cases, {} pieces of evidence", cases_.size(), evidence_.size());
}

std::vector<Case> Contest::cases_that(const Wanted& wanted) const {
  std::vector<Case> list;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (wanted(evidence_[i])) list.push_back(cases_[i]);
  }
  return list;
}

Evidence& Contest::evidence_of(const Case& one) {
  return evidence_[static_cast<std::size_t>(std::ranges::find(cases_, one) - cases_.begin())];
}

/// Whether to look at what `blocks` blocks say: at the least number, at twice as many, and so on. A look after every
/// block would stop when the interval is narrow by chance, and be wrong too often.
bool Contest::is_look(int blocks) const {
  for (int look = options_.least_blocks; look <= blocks; look *= 2) {
    if (look == blocks) return true;
  }
  return false;
}

Contest::Progress Contest::progress_at(int block, bool confirms, std::span<const Case> cases) const {
  int look = block + 1;
  while (look < options_.most_blocks && !is_look(look)) ++look;
  return {.confirms = confirms,
          .block = block + 1,
          .most = options_.most_blocks,
          .cells = cases.size(),
          .look = look,
          .cases = cases};
}

Status Contest::run(const Launch& launch, const std::function<void(const Progress&)>& on_block) {
  const auto is_measured = [](const Evidence& evidence) { return !is_excluded(evidence); };
  std::vector<Case> cases = cases_that(is_measured);
  for (int block = 0; block < options_.most_blocks; ++block) {
    if (is_look(block)) cases = cases_that(is_open);
    std::erase_if(cases, [this](const Case& one) { return is_excluded(evidence_of(one)); });
    if (cases.empty()) break;
    on_block(progress_at(block, false, cases));
    TUTTI_RETURN_IF_ERROR(run_block(cases, block, false, launch));
  }
  return options_.confirms ? confirm(launch, on_block) : Status();
}

Status Contest::confirm(const Launch& launch, const std::function<void(const Progress&)>& on_block) {
  const auto is_to_confirm = [](const Evidence& evidence) {
    if (is_excluded(evidence) || !evidence.counters.empty()) return false;
    if (judge(evidence).opinion != Opinion::slower) return false;
    return confirmed_opinion(evidence).value_or(Opinion::undecided) == Opinion::undecided;
  };
  std::vector<Case> cases = cases_that(is_to_confirm);
  for (const Case& one : cases) {  // nothing of what made it doubtful takes part
    evidence_of(one).waiting_mine.clear();
    evidence_of(one).waiting_other.clear();
  }
  for (int block = 0; block < options_.most_blocks; ++block) {
    if (is_look(block)) cases = cases_that(is_to_confirm);
    std::erase_if(cases, [this](const Case& one) { return is_excluded(evidence_of(one)); });
    if (cases.empty()) break;
    on_block(progress_at(block, true, cases));
    TUTTI_RETURN_IF_ERROR(run_block(cases, block, true, launch));
  }
  return {};
}

Status Contest::run_block(std::span<const Case> cases, int block, bool confirms, const Launch& launch) {
  std::vector<CellGroup> groups = groups_of(cases);
  std::ranges::shuffle(groups, random_);
  for (const CellGroup& group : groups) TUTTI_RETURN_IF_ERROR(run_group(group, block, confirms, launch));
  return {};
}

Status Contest::run_group(const CellGroup& group, int block, bool confirms, const Launch& launch) {
  Launched all;
  const std::uint64_t seed = random_() >> 1U;  // of all launches of a block the same: the same data, the same order
  const auto order = options_.is_abba ? order_of_block(block) : std::vector{GateSide::mine};
  for (const GateSide side : order) {
    TUTTI_ASSIGN_OR_RETURN(const Launched one, launch(side, group, seed));
    all.mine.insert(all.mine.end(), one.mine.begin(), one.mine.end());
    all.other.insert(all.other.end(), one.other.begin(), one.other.end());
    if (!one.failure.empty() && all.failure.empty()) all.failure = one.failure;
    const bool is_fruitless = !one.failure.empty() && one.mine.empty() && one.other.empty();
    if (is_fruitless) break;  // no cell can have all rows of this block any more, and each hang costs minutes
  }
  const std::size_t each = options_.is_abba ? order.size() / 2 : 1;
  bool is_told = all.failure.empty();
  for (const Case& one : group.cases) {
    BlockRows rows;
    append_of_case(one, all.mine, rows.mine);
    append_of_case(one, all.other, rows.other);
    Evidence& evidence = evidence_of(one);
    add_block(evidence, rows, options_.names, confirms);
    for (std::size_t i = 0; options_.is_against_record && i < std::min(rows.mine.size(), rows.other.size()); ++i) {
      if (std::string why = difference_of_machines(rows.other[i].machine, rows.mine[i].machine); !why.empty())
        evidence.invalid = std::move(why);
    }
    if (rows.mine.size() >= each && rows.other.size() >= each) continue;
    is_told = true;
    const std::string& whose = rows.mine.size() < each ? options_.names.mine : options_.names.other;
    evidence.missing = all.failure.empty() ? fmt::format("{}: no row of it", whose) : all.failure;
  }
  // It failed when all had been measured.
  for (const Case& one : is_told ? std::vector<Case>() : group.cases) evidence_of(one).missing = all.failure;
  return {};
}

}  // namespace tutti::harness::gate
