// SPDX-License-Identifier: Apache-2.0
#include "src/jobs.h"

#include <algorithm>
#include <random>
#include <span>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/launch/binding.h"
#include "harness/launch/launch.h"
#include "harness/machine/machine.h"
#include "harness/measure/memory.h"
#include "harness/record/row_json.h"
#include "harness/record/row_stamp.h"
#include "harness/report/json.h"
#include "harness/text/streams.h"
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
    } else if (type == "samples") {
      note(listener_.on_samples(text));
    } else if (type == "facts") {
      listener_.on_facts(spec_.ranks, std::string(text));
    }
  }

  [[nodiscard]] std::string case_name(std::uint32_t index) const override {
    return harness::name_of_number(spec_, index);
  }

  [[nodiscard]] std::vector<std::string> standings(int domain_fd) const override {
    return harness::standings_of(spec_, domain_fd);
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
      stamp_.put_into(row);
    }
    if (rows.empty()) return;
    note(listener_.on_cell(rows));
  }
  void note(const Status& status) {
    if (!status.is_ok() && failure_.is_ok()) failure_ = status;
  }

  const SessionSpec& spec_;
  const JobsListener& listener_;
  Place place_;
  harness::RowStamp stamp_{harness::describe_machine()};
  Status failure_;
};

bool has_reference(const std::vector<std::vector<Case>>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const std::vector<Case>& cell) {
    return std::any_of(cell.begin(), cell.end(),
                       [](const Case& one) { return harness::backend_of(one.backend) != harness::kOwnBackend; });
  });
}

int run_job(const SessionSpec& spec, Messages& messages) {
  harness::Job job = job_of(spec);
  job.needs_mpirun = spec.ranks_as == RanksAs::processes && has_reference(spec.cells);
  const auto outcome = harness::launch_job(job, messages);
  if (!outcome.is_ok()) return complain(outcome.status());
  const int code = exit_code_of(outcome.value());
  if (code == exit_ok) return messages.failure().is_ok() ? exit_ok : complain(messages.failure());
  harness::to_stderr("\n");
  complain(outcome.value().failure);
  // An interrupted mpirun says much about ranks that it ended because we asked it to.
  if (!outcome.value().log_tail.empty() && code != exit_interrupted)
    harness::to_stderr(fmt::format("last lines of the job's log:\n{}\n", outcome.value().log_tail));
  return code;
}

using Cells = std::vector<std::vector<Case>>;

/// What each start of the ranks runs: per launch, the cells of each number of ranks.
std::vector<Cells> jobs_of(const JobsRequest& request) {
  std::vector<Cells> jobs;
  for (int launch = 0; launch < request.launches; ++launch) {
    const std::size_t before = jobs.size();
    for (const std::vector<Case>& cell : request.cells) {
      const bool is_next = jobs.size() == before || jobs.back().front().front().ranks != cell.front().ranks;
      if (is_next) jobs.emplace_back();
      jobs.back().push_back(cell);
    }
    if (request.launches == 1) continue;
    std::mt19937_64 random(request.spec.seed + static_cast<std::uint64_t>(launch));
    for (std::size_t i = before; i < jobs.size(); ++i) std::ranges::shuffle(jobs[i], random);
  }
  return jobs;
}

}  // namespace

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

int exit_code_of(const Outcome& outcome) {
  if (outcome.ok) return exit_ok;
  if (outcome.how == Ending::interrupted) return exit_interrupted;
  if (outcome.how == Ending::said_error) return exit_code_of(outcome.failure);
  return exit_crash;
}

harness::Job job_of(const SessionSpec& spec) {
  harness::Job job;
  job.ranks = spec.ranks;
  job.ranks_as = spec.ranks_as;
  job.arguments = {"rank"};
  job.payload = to_json(spec);
  job.domain_bytes = spec.ranks_as == RanksAs::processes ? domain_bytes(domain_shape(spec)) : 0;
  job.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(spec.timeout);
  return job;
}

int run_jobs(const JobsRequest& request, const JobsListener& listener) {
  const std::vector<Cells> jobs = jobs_of(request);
  std::size_t all = 0, first = 0;
  for (const Cells& cells : jobs) all += cells.size();
  int start = 1;
  for (const Cells& cells : jobs) {
    SessionSpec spec = request.spec;
    spec.launch = start;
    spec.ranks = cells.front().front().ranks;
    spec.cells = resolved(cells, spec.ranks_as);
    if (auto* const task = std::get_if<harness::MeasureTask>(&spec.task)) {
      task->cells_after = static_cast<int>(all - first - cells.size());
    }
    spec.heap_bytes = harness::heap_bytes_for(spec.cells, spec.conditions.cache, harness::memory_for(spec),
                                              harness::most_for_limits(spec));
    Messages messages(spec, listener,
                      {.first = first, .of = all, .launch = start++, .launches = static_cast<int>(jobs.size())});
    if (const int code = run_job(spec, messages); code != exit_ok) return code;
    first += cells.size();
  }
  return exit_ok;
}

}  // namespace tutti::program
