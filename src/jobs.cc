// SPDX-License-Identifier: Apache-2.0
#include "src/jobs.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/launch/launch.h"
#include "harness/report/json.h"
#include "impl/communicator/communicator.h"
#include "src/program.h"

namespace tutti::program {
namespace {

using harness::Case;
using harness::Ending;
using harness::Outcome;
using harness::RanksAs;
using harness::Row;
using harness::SessionSpec;

/// Turns one job's messages into calls of the JobsListener.
class Messages final : public harness::Listener {
 public:
  struct Place {
    std::size_t first = 0;  ///< of this job's cells among all
    std::size_t of = 0;
    int launch = 1;    ///< this start of the ranks, from 1
    int launches = 1;  ///< of the whole run
  };
  Messages(const SessionSpec& spec, const JobsListener& listener, Place place)
      : spec_(spec), listener_(listener), place_(place) {}

  void on_message(int /*rank*/, std::string_view type, std::string_view text) override {
    if (type == "begin") {
      const auto index = static_cast<std::size_t>(std::strtoull(std::string(text).c_str(), nullptr, 10));
      if (index < spec_.cells.size()) listener_.on_begin(spec_.cells[index], place_.first + index, place_.of);
    } else if (type == "cell") {
      on_cell(text);
    } else if (type == "facts") {
      listener_.on_facts(spec_.ranks, std::string(text));
    }
  }

  [[nodiscard]] std::string case_name(std::uint32_t index) const override {
    if (index >= spec_.cells.size() || spec_.cells[index].empty()) return "the start of the job";
    return case_id(spec_.cells[index].front());
  }

  [[nodiscard]] const Status& failure() const { return failure_; }

 private:
  void on_cell(std::string_view lines) {
    std::vector<Row> rows;
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      auto row = harness::row_from_json(lines.substr(0, end));
      if (row.is_ok()) rows.push_back(std::move(row).value());
      if (!row.is_ok() && failure_.is_ok()) failure_ = row.status();
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    for (Row& row : rows) {
      row.launch = place_.launch;
      row.launches = place_.launches;
    }
    if (rows.empty()) return;
    const Status status = listener_.on_cell(rows);
    if (!status.is_ok() && failure_.is_ok()) failure_ = status;
  }

  const SessionSpec& spec_;
  const JobsListener& listener_;
  Place place_;
  Status failure_;
};

bool has_reference(const std::vector<std::vector<Case>>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const std::vector<Case>& cell) {
    return std::any_of(cell.begin(), cell.end(), [](const Case& one) { return one.backend != harness::kOwnBackend; });
  });
}

int exit_code_of(const Outcome& outcome) {
  if (outcome.ok) return exit_ok;
  if (outcome.how == Ending::interrupted) return exit_interrupted;
  if (outcome.how == Ending::said_error) return program::exit_code_of(outcome.failure);
  return exit_crash;
}

int run_job(const SessionSpec& spec, Messages& messages) {
  harness::Job job;
  job.ranks = spec.ranks;
  job.ranks_as = spec.ranks_as;
  job.needs_mpirun = spec.ranks_as == RanksAs::processes && has_reference(spec.cells);
  job.arguments = {"rank"};
  job.payload = to_json(spec);
  job.domain_bytes = spec.ranks_as == RanksAs::processes ? domain_bytes(domain_shape(spec)) : 0;
  job.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(spec.timeout);
  const auto outcome = harness::launch(job, messages);
  if (!outcome.is_ok()) return complain(outcome.status());
  const int code = exit_code_of(outcome.value());
  if (code == exit_ok) return messages.failure().is_ok() ? exit_ok : complain(messages.failure());
  fmt::print(stderr, "\n");
  complain(outcome.value().failure);
  // An interrupted mpirun says much about ranks that it ended because we asked it to.
  if (!outcome.value().log_tail.empty() && code != exit_interrupted)
    fmt::print(stderr, "last lines of the job's log:\n{}\n", outcome.value().log_tail);
  return code;
}

/// The cells with the algorithm that `auto` chooses in its place; what then stands in a cell twice runs once.
std::vector<std::vector<Case>> resolved(std::span<const std::vector<Case>> cells, RanksAs ranks_as) {
  const int cores = harness::cores_together(ranks_as);
  std::vector<std::vector<Case>> result;
  for (const std::vector<Case>& cell : cells) {
    std::vector<Case>& cases = result.emplace_back();
    for (Case one : cell) {
      if (one.algorithm == "auto") one.algorithm = choose_algorithm(one.problem(), one.buffers, cores, one.bytes).name;
      harness::append_new(cases, std::move(one));
    }
  }
  return result;
}

/// The cells of one job: those from `first` on that have as many ranks.
std::span<const std::vector<Case>> cells_of_job(const std::vector<std::vector<Case>>& cells, std::size_t first) {
  const auto begin = cells.begin() + static_cast<std::ptrdiff_t>(first);
  const int ranks = begin->front().ranks;
  const auto end = std::find_if(begin, cells.end(), [&](const auto& cell) { return cell.front().ranks != ranks; });
  return {begin, end};
}

}  // namespace

int run_jobs(const JobsRequest& request, const JobsListener& listener) {
  const std::size_t all = request.cells.size();
  int launches = 0;
  for (std::size_t first = 0; first < all; first += cells_of_job(request.cells, first).size()) ++launches;
  std::size_t first = 0;
  for (int launch = 1; first < all; ++launch) {
    const auto cells = cells_of_job(request.cells, first);
    SessionSpec spec = request.spec;
    spec.ranks = cells.front().front().ranks;
    spec.cells = resolved(cells, spec.ranks_as);
    spec.cells_after = static_cast<int>(all - first - cells.size());
    spec.heap_bytes = harness::heap_bytes_for(spec.cells);
    Messages messages(spec, listener, {.first = first, .of = all, .launch = launch, .launches = launches});
    if (const int code = run_job(spec, messages); code != exit_ok) return code;
    first += cells.size();
  }
  return exit_ok;
}

}  // namespace tutti::program
