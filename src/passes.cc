// SPDX-License-Identifier: Apache-2.0
#include "src/passes.h"

#include <algorithm>
#include <utility>

#include "harness/machine/clock.h"
#include "src/jobs.h"
#include "src/request.h"

namespace tutti::program {
namespace {

namespace guidelines = harness::guidelines;

using harness::Case;
using harness::Row;

constexpr double kShareOfFirstPass = 0.75;  ///< of a budget; the rest is for what is to be confirmed

}  // namespace

Result<Passes> Passes::open(const Settings& settings, int blocks, std::int64_t end_ns) {
  Passes passes(settings, blocks, end_ns);
  if (!settings.csv.empty()) {
    TUTTI_ASSIGN_OR_RETURN(passes.csv_, harness::CsvFile::open(settings.csv));
  }
  return passes;
}

guidelines::Measured Passes::run(std::vector<std::vector<Case>> cells, std::int64_t end_ns) {
  guidelines::Measured measured;
  std::string cell;
  std::vector<harness::BlockMedians> medians;
  JobsRequest request = request_of(settings_);
  request.cells = std::move(cells);
  request.spec.task = harness::MeasureTask{.end_ns = end_ns, .blocks = blocks_};
  const int code = run_jobs(request, {.on_begin =
                                          [&](const std::vector<Case>& begun, std::size_t index, std::size_t of) {
                                            cell = case_id(begun.front());
                                            if (!settings_.is_quiet) progress_.begin(begun.front(), index, of);
                                          },
                                      .on_cell =
                                          [&](const std::vector<Row>& rows) {
                                            progress_.clear();
                                            progress_.add(rows);
                                            for (const harness::BlockMedians& one : medians) measured.add(cell, one);
                                            medians.clear();
                                            for (const Row& row : rows) keep(measured, cell, row);
                                            return Status();
                                          },
                                      .on_facts = [](int, const std::string&) {},
                                      .on_blocks = [&](const harness::BlockMedians& one) { medians.push_back(one); }});
  progress_.clear();
  if (code_ == exit_ok) code_ = code;
  return measured;
}

TwoPasses Passes::run_twice(const guidelines::Plan& plan, std::int64_t end_ns, IsToConfirm is_to_confirm) {
  TwoPasses passes{.first = run(plan.cells, share_of_budget(end_ns, kShareOfFirstPass)), .again = {}};
  std::vector<guidelines::Comparison> to_confirm;
  for (const guidelines::Comparison& one : plan.comparisons) {
    if (is_to_confirm(judge_comparison(one, plan.cells, passes.first))) to_confirm.push_back(one);
  }
  if (!to_confirm.empty() && !is_interrupted()) {
    passes.again = run(guidelines::cells_to_confirm(to_confirm, plan.cells), end_ns);
  }
  return passes;
}

bool was_slower(const guidelines::Found& found) {
  return found.state == guidelines::Found::State::judged && found.cell.judgement.opinion == harness::Opinion::slower;
}

void Passes::keep(guidelines::Measured& measured, const std::string& cell, const Row& row) {
  measured.add(cell, row);
  rows_.push_back(row);
  if (csv_ && csv_failure_.is_ok()) csv_failure_ = csv_->write(row);
}

std::int64_t share_of_budget(std::int64_t end_ns, double share) {
  if (end_ns == 0) return 0;
  const std::int64_t now_ns = harness::monotonic_ns();
  const double left_ns = static_cast<double>(std::max<std::int64_t>(0, end_ns - now_ns));
  return now_ns + std::max<std::int64_t>(1, static_cast<std::int64_t>(share * left_ns));
}

int exit_code_of_gate(const harness::GateReport& report, bool has_crashed) {
  if (report.count(harness::Opinion::wrong) > 0) return exit_wrong;
  if (has_crashed) return exit_crash;
  if (report.count(harness::Opinion::slower) > 0) return exit_slower;
  if (report.cells.empty() || report.count(harness::Opinion::missing) + report.count(harness::Opinion::invalid) > 0)
    return exit_environment;
  if (report.requires_times && report.count(harness::Opinion::too_short) > 0) return exit_environment;
  return report.count(harness::Opinion::undecided) > 0 ? exit_undecided : exit_ok;
}

std::string unfinished_text_of(int code) {
  if (code == exit_ok) return {};
  return code == exit_interrupted ? "interrupted" : "a job failed, as stderr has it";
}

}  // namespace tutti::program
