// SPDX-License-Identifier: Apache-2.0
// `tutti train`: a small network learns digits on all ranks, and every sum of gradients is verified.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "harness/cases/lists.h"
#include "harness/launch/launch.h"
#include "harness/machine/clock.h"
#include "harness/machine/machine.h"
#include "harness/text/counted.h"
#include "harness/text/file.h"
#include "harness/text/output_file.h"
#include "harness/text/streams.h"
#include "harness/train/report.h"
#include "impl/algorithms/algorithm.h"
#include "impl/types/number.h"
#include "src/failed_start.h"
#include "src/jobs.h"
#include "src/options.h"
#include "src/program.h"
#include "src/progress.h"
#include "src/references.h"
#include "src/request.h"
#include "src/session_messages.h"
#include "src/transports.h"
#include "src/usage.h"

namespace tutti::program {
namespace {

using harness::SessionSpec;
using harness::TrainJob;
using harness::TrainRecord;
using harness::TrainRow;
using harness::TrainTask;

constexpr std::size_t kHeldOut = 1;  // enough to see that the files are right
constexpr std::int64_t kLeastBucket = 4, kMostBucket = std::int64_t{1} << 30;

/// The options that no sweep has, as text.
struct TrainTexts {
  std::string gradients = "all";
  std::string bucket_bytes = "32K";
  std::string images = "1024";
  std::string batch = "64";
  std::string epochs = "2";
  std::string rate = "0.05";
  std::string momentum = "0.9";
  std::string buffers = "private";
  std::string data;
  std::string record;
  bool is_quiet = false;
};

/// All jobs, and what they have in common.
struct Course {
  std::vector<SessionSpec> specs;
  std::int64_t learned = 0;  ///< images
  std::string images;        ///< where they are from
};

template <class T>
Status option_error(std::string_view option, const Result<T>& result) {
  return error(result.status().code(), "{}: {}", option, result.status().message());
}

/// A decimal number with up to six digits behind the point, in millionths.
Result<int> parse_millionths(std::string_view text, int least, int most) {
  double value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = failure == std::errc() && stop == text.data() + text.size() && std::isfinite(value);
  const double scaled = value * 1e6;
  if (is_number && scaled >= least && scaled <= most) return static_cast<int>(std::lround(scaled));
  return error(Code::invalid_argument, "'{}' is no number from {:g} to {:g}: did you mean '{:g}'?", shown(text),
               least * 1e-6, most * 1e-6, (is_number && scaled > most ? most : least) * 1e-6);
}

Result<TrainTask> task_of(const TrainTexts& texts, const harness::Sweep& sweep) {
  TrainTask task;
  const auto ways = harness::parse_ways(texts.gradients);
  if (!ways.is_ok()) return option_error("--gradients", ways);
  for (const harness::Way way : ways.value()) task.gradients.emplace_back(to_string(way));
  const auto bytes = harness::parse_bytes(texts.bucket_bytes);
  if (!bytes.is_ok()) return option_error("--bucket-bytes", bytes);
  task.bucket_bytes = bytes.value();
  if (task.bucket_bytes < kLeastBucket || task.bucket_bytes > kMostBucket) {
    return error(Code::invalid_argument, "--bucket-bytes: {} is not from {} to 1G: did you mean '{}'?",
                 task.bucket_bytes, kLeastBucket, task.bucket_bytes < kLeastBucket ? "32K" : "1G");
  }
  const auto number = [](std::string_view option, const std::string& text, std::string_view what, int most,
                         int& to) -> Status {
    const auto parsed = parse_number(text, what, 1, most);
    if (!parsed.is_ok()) return option_error(option, parsed);
    to = parsed.value();
    return {};
  };
  constexpr int kMostEpochs = 1000;
  const auto most_images = static_cast<int>(harness::kMostImages);
  TUTTI_RETURN_IF_ERROR(number("--images", texts.images, "a number of images", most_images, task.images));
  TUTTI_RETURN_IF_ERROR(number("--batch", texts.batch, "a number of images", most_images, task.batch));
  TUTTI_RETURN_IF_ERROR(number("--epochs", texts.epochs, "a number of epochs", kMostEpochs, task.epochs));
  const auto rate = parse_millionths(texts.rate, 1, 10'000'000);
  if (!rate.is_ok()) return option_error("--rate", rate);
  task.rate_millionths = rate.value();
  const auto momentum = parse_millionths(texts.momentum, 0, 999'999);
  if (!momentum.is_ok()) return option_error("--momentum", momentum);
  task.momentum_millionths = momentum.value();
  for (const std::string& name : sweep.algorithms) {
    if (name != harness::kAuto && name != harness::kAll) {
      const auto found = find_algorithm(Collective::all_reduce, name);
      if (!found.is_ok()) return option_error("--algorithms", found);
    }
    if (name != harness::kAll) task.algorithms.push_back(name);
    if (name != harness::kAll) continue;
    for (const Algorithm* const one : algorithms_of(Collective::all_reduce)) task.algorithms.emplace_back(one->name);
  }
  const auto buffers = harness::parse_buffer_kinds(texts.buffers);
  if (!buffers.is_ok()) return option_error("--buffers", buffers);
  if (buffers.value().size() != 1) {
    return error(Code::invalid_argument, "--buffers: a training has one kind: did you mean 'private'?");
  }
  task.has_shared_buffers = buffers.value().front() == Buffers::shared;
  task.folder = texts.data;
  task.is_traced = !texts.record.empty();
  return task;
}

/// Errors: invalid_argument where ranks would have no image.
Status check_shares(const TrainTask& task, std::int64_t learned, int ranks) {
  if (task.batch < ranks) {
    return error(Code::invalid_argument, "--batch: {0} images for {1} ranks leave some without: did you mean '{1}'?",
                 task.batch, ranks);
  }
  if (learned >= ranks) return {};
  return error(Code::invalid_argument, "--images: {0} for {1} ranks leave some without: did you mean '{1}'?", learned,
               ranks);
}

/// A job for each backend, number of ranks and transport. Errors: invalid_argument, unavailable.
Result<Course> course_of(Settings& settings, const TrainTexts& texts) {
  harness::Sweep& sweep = settings.sweep;
  const bool as_processes = sweep.ranks_as->is_process;
  if (!as_processes && sweep.ranks_as->ranks_of_runner != 1) {
    return error(Code::invalid_argument,
                 "--ranks-as: a training runs with processes and threads, not {}: did you mean "
                 "'threads'?",
                 to_string(sweep.ranks_as));
  }
  TUTTI_ASSIGN_OR_RETURN(const TrainTask task, task_of(texts, sweep));
  Course course;
  if (task.folder.empty()) {
    course.learned = task.images;
    course.images = fmt::format("drawn from seed {}", sweep.seed);
  } else {
    const auto sets = harness::read_mnist(task.folder, static_cast<std::size_t>(task.images), kHeldOut);
    if (!sets.is_ok()) return option_error("--data", sets);
    course.learned = static_cast<std::int64_t>(sets.value().learned.count());
    course.images = fmt::format("of '{}'", task.folder);
  }
  if (!settings.has_ranks) sweep.ranks = {default_ranks()};
  for (const int ranks : sweep.ranks) TUTTI_RETURN_IF_ERROR(check_shares(task, course.learned, ranks));
  TUTTI_RETURN_IF_ERROR(settle_backends(sweep.backends, as_processes, !texts.is_quiet));
  SessionSpec common = session_of(settings);
  common.task = task;
  common.heap_bytes = task.has_shared_buffers ? std::size_t{1} << 20U : 0;
  for (const int ranks : sweep.ranks) {
    for (const std::string& transport : transports_of(sweep)) {
      for (const std::string& backend : sweep.backends) {
        if (harness::instance_of(backend) != backend) {
          return error(Code::invalid_argument, "--backends: a training compares no backend with itself: name '{}' once",
                       harness::instance_of(backend));
        }
        const bool is_own = backend == harness::kOwnBackend;
        if (!is_own && !as_processes) {
          if (!settings.are_backends_named) continue;
          return error(Code::invalid_argument, "--ranks-as: {} runs with ranks as processes only, not as {}", backend,
                       to_string(sweep.ranks_as));
        }
        // A reference has its own transports: it runs once.
        if (!is_own && transport != transports_of(sweep).front()) continue;
        common.references = is_own ? std::vector<std::string>() : std::vector{backend};
        common.ranks = ranks;
        set_transport(transport, common);
        course.specs.push_back(common);
      }
    }
  }
  const auto one_run = [&](const SessionSpec& spec) {
    return task.gradients.size() == 1 && (task.algorithms.size() <= 1 || !spec.references.empty());
  };
  if (task.is_traced && (course.specs.size() != 1 || !one_run(course.specs.front()))) {
    return error(Code::invalid_argument,
                 "--record: a trace is of one training: name one of --gradients, --backends, --algorithms and --ranks");
  }
  return course;
}

/// Where results go.
class Outputs {
 public:
  Outputs(const Settings& settings, const TrainTexts& texts) : settings_(settings), texts_(texts) {}

  /// Errors: invalid_argument for what cannot be written.
  Status open(const Course& course) {
    TUTTI_RETURN_IF_ERROR(harness::check_apart({"--csv", settings_.csv}, {"--record", texts_.record}, ".trace.csv"));
    TUTTI_RETURN_IF_ERROR(harness::check_apart({"--json", settings_.json}, {"--record", texts_.record}, ".trace.csv"));
    TUTTI_RETURN_IF_ERROR(harness::check_apart({"--html", settings_.html}, {"--record", texts_.record}, ".trace.csv"));
    console_ = console_for(settings_);
    for (const std::string& path : {settings_.csv, texts_.record}) {
      if (!path.empty()) TUTTI_RETURN_IF_ERROR(harness::check_writable(path));
    }
    TUTTI_RETURN_IF_ERROR(whole_.open(settings_.html));
    if (!is_stdout(settings_.json)) TUTTI_RETURN_IF_ERROR(whole_.open(settings_.json));
    if (!settings_.csv.empty()) {
      TUTTI_ASSIGN_OR_RETURN(csv_, harness::LineFile::open(settings_.csv));
      TUTTI_RETURN_IF_ERROR(csv_->append(harness::csv_head()));
    }
    if (!texts_.record.empty()) {
      TUTTI_ASSIGN_OR_RETURN(trace_, harness::LineFile::open(texts_.record));
      TUTTI_RETURN_IF_ERROR(trace_->append("step,group,operation,dtype,op,bytes,peer_bytes,gap_us\n"));
    }
    const std::string version = version_text();
    record_ = {.machine_json = machine_to_json(harness::describe_machine()),
               .command = command_line(),
               .started = harness::utc_now(),
               .version = version.substr(0, version.find('\n')),
               .seed = course.specs.empty() ? 1 : course.specs.front().seed,
               .results = {}};
    return {};
  }

  void begin(const TrainJob& job) {
    if (job_ == job) return;
    end_job();
    job_ = job;
    console_.print(heading_of(job));
  }
  void add(const TrainRow& row) {
    rows_.push_back(row);
    record_.results.push_back({*job_, row});
    console_.print(line_of(row));
    if (console_.is_silent() && row.wrong > 0) {
      harness::to_stderr(fmt::format("tutti: wrong: {} {}: {}\n", row.backend, row.gradients, shown(row.reason)));
    }
    if (csv_) note(csv_->append(csv_line(record_.results.back())));
    if (!settings_.json.empty() && !is_stdout(settings_.json)) note(whole_.replace(settings_.json, json_of(record_)));
  }
  void add_trace(std::string_view lines) {
    if (trace_) note(trace_->append(lines));
  }
  void diagnose(const std::string& why) { record_.diagnosis = why; }
  [[nodiscard]] std::size_t count(std::string_view verdict) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        record_.results, [&](const harness::TrainResult& one) { return verdict_of(one.row) == verdict; }));
  }
  [[nodiscard]] const std::vector<harness::TrainResult>& results() const { return record_.results; }

  /// Errors: the first of any file.
  Status close(std::int64_t took_ns) {
    end_job();
    const std::size_t all = record_.results.size();
    console_.print(fmt::format("# {}: {} ok, {} wrong, {} skipped; {:.1f} s\n", harness::counted(all, "training"),
                               count("ok"), count("wrong"), count("skipped"), static_cast<double>(took_ns) * 1e-9));
    if (is_stdout(settings_.json)) {
      note(harness::to_stdout(json_of(record_)));
    } else if (!settings_.json.empty()) {
      note(whole_.replace(settings_.json, json_of(record_)));
    }
    if (!settings_.html.empty() && all > 0) note(whole_.replace(settings_.html, page_of(record_)));
    return failure_;
  }

 private:
  static bool is_stdout(const std::string& path) { return path == harness::kStdoutPath; }
  void end_job() {
    if (!rows_.empty()) console_.print(ending_of(rows_));
    rows_.clear();
  }
  void note(const Status& status) {
    if (!status.is_ok() && failure_.is_ok()) failure_ = status;
  }

  const Settings& settings_;
  const TrainTexts& texts_;
  harness::Console console_;
  harness::OutputFiles whole_;
  std::optional<harness::LineFile> csv_, trace_;
  TrainRecord record_;
  std::optional<TrainJob> job_;
  std::vector<TrainRow> rows_;  ///< of the job
  Status failure_;
};

class TrainMessages final : public SessionMessages {
 public:
  struct Place {
    std::size_t job = 0;  ///< of `jobs`
    std::size_t jobs = 1;
    const TrainJob& of;
    bool is_quiet = false;
  };
  TrainMessages(const SessionSpec& spec, Place place, Outputs& outputs, Progress& progress)
      : SessionMessages(spec, {{"trained", [this](std::string_view text) { add(text); }},
                               {"trace", [this](std::string_view text) { outputs_.add_trace(text); }},
                               {"training", [this](std::string_view text) { show(text); }}}),
        place_(place),
        outputs_(outputs),
        progress_(progress) {}

  [[nodiscard]] std::string case_name(std::uint32_t /*index*/) const override {
    if (so_far.runs == 0) return "the training";
    const std::string backend = spec_.references.empty() ? std::string(harness::kOwnBackend) : spec_.references.front();
    return fmt::format("the training of {} (step {} or later)", backend, so_far.step);
  }
  bool has_begun = false;  ///< the ranks are at work
  harness::TrainProgress so_far;

 private:
  void add(std::string_view text) {
    auto row = harness::train_row_from_json(text);
    progress_.clear();
    note(row.status());
    if (!row.is_ok()) return;
    has_begun = true;
    outputs_.begin(place_.of);
    outputs_.add(row.value());
  }
  void show(std::string_view text) {
    const auto read = harness::train_progress_from_json(text);
    if (!read.is_ok() || read.value().runs == 0) return;
    const harness::TrainProgress& told = read.value();
    has_begun = true;
    so_far = told;
    if (place_.is_quiet) return;
    const double share = (static_cast<double>(told.run) +
                          static_cast<double>(told.step) / static_cast<double>(std::max<std::int64_t>(told.steps, 1))) /
                         static_cast<double>(told.runs);
    progress_.show(fmt::format("[{}/{}] P={}: training {} of {}, step {} of {}, loss {:.3f}", place_.job + 1,
                               place_.jobs, spec_.ranks, told.run + 1, told.runs, told.step, told.steps, told.loss),
                   (static_cast<double>(place_.job) + share) / static_cast<double>(place_.jobs));
  }

  Place place_;
  Outputs& outputs_;
  Progress& progress_;
};

TrainJob job_for(const SessionSpec& spec, const Course& course) {
  const TrainTask& task = *spec.as<TrainTask>();
  return {.ranks = spec.ranks,
          .ranks_as = std::string(to_string(spec.ranks_as)),
          .transport = spec.transport,
          .buffers = std::string(to_string(task.has_shared_buffers ? Buffers::shared : Buffers::private_)),
          .images = course.images,
          .learned = course.learned,
          .batch = task.batch,
          .epochs = task.epochs,
          .bucket_bytes = task.bucket_bytes};
}

/// Prints that the ranks of a reference cannot be started, which is an error if it was named.
int leave_out_training(const std::string& backend, const std::string& why, const Settings& settings) {
  const Status status = error(Code::unavailable, "ranks of backend {} cannot train here: {}", backend, why);
  if (settings.are_backends_named) return complain(status);
  harness::to_stderr(fmt::format("# without {}: {}\n", backend, status.message()));
  return exit_ok;
}

int train_once(const SessionSpec& spec, const Settings& settings, TrainMessages& messages, Outputs& outputs,
               Progress& progress) {
  const Result<Starter> starter =
      spec.references.empty() ? Result<Starter>(Starter()) : starter_of(spec.references.front());
  if (!starter.is_ok()) return complain(starter.status());
  if (!starter.value().on_gpus.empty()) {
    return leave_out_training(spec.references.front(), "its buffers lie in the memory of GPUs, and a training's do not",
                              settings);
  }
  const auto topology = harness::topology_of(spec);
  if (!topology.is_ok()) return complain(topology.status());
  const auto outcome = harness::launch_placed(job_of(spec, topology.value(), starter.value()), messages);
  progress.clear();
  if (!outcome.is_ok()) return complain(outcome.status());
  if (outcome.value().ok) return messages.failure().is_ok() ? exit_ok : complain(messages.failure());
  if (!messages.has_begun && !not_started(spec, starter.value(), outcome.value()).empty()) {
    return leave_out_training(spec.references.front(), why_not_started(outcome.value()), settings);
  }
  const std::string_view message = outcome.value().failure.message();
  outputs.diagnose(std::string(message.substr(0, message.find('\n'))));
  complain(outcome.value().failure);
  const int code = exit_code_of(outcome.value());
  if (!spec.references.empty() && !outcome.value().log_tail.empty() && code != exit_interrupted) {
    harness::to_stderr(fmt::format("last lines of the job's log:\n{}\n", outcome.value().log_tail));
  }
  return code;
}

int train(const SweepOptions& options, const TrainTexts& texts) {
  auto parsed = options.settings({.known_backends = known_backends()});
  if (!parsed.is_ok()) return complain(parsed.status());
  Settings& settings = parsed.value();
  settings.is_quiet = texts.is_quiet;
  const auto course = course_of(settings, texts);
  if (!course.is_ok()) return complain(course.status());
  Outputs outputs(settings, texts);
  if (const Status status = outputs.open(course.value()); !status.is_ok()) return complain(status);
  const std::int64_t begin = harness::monotonic_ns();
  Progress progress(0);
  int code = exit_ok;
  const std::vector<SessionSpec>& specs = course.value().specs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const TrainJob job = job_for(specs[i], course.value());
    TrainMessages messages(specs[i], {.job = i, .jobs = specs.size(), .of = job, .is_quiet = texts.is_quiet}, outputs,
                           progress);
    const int one = train_once(specs[i], settings, messages, outputs, progress);
    code = one == exit_interrupted ? one : std::max(code, one);
    if (one == exit_interrupted) break;
  }
  const Status written = outputs.close(harness::monotonic_ns() - begin);
  if (code == exit_ok && outputs.count("wrong") > 0) return exit_wrong;
  if (code != exit_ok) return code;
  if (!written.is_ok()) return complain(written);
  if (outputs.count("ok") > 0) return exit_ok;
  return complain(error(Code::unavailable, "nothing was trained: {}",
                        outputs.results().empty() ? "no backend can run here" : "every training was skipped"));
}

}  // namespace

void add_train(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("train", "a network learns digits: gradients added up, verified, timed");
  command->footer("Example: tutti train --ranks 2 --gradients buckets,overlapped --html train.html");
  auto options = std::make_shared<SweepOptions>(
      *command,
      std::vector<OptionChoice>{
          {"--backends"},
          {"--algorithms", "", "own algorithms of all_reduce by name, auto (the table's choice), or all"},
          {"--ranks"},
          {"--ranks-as", "", "what a rank is: processes, threads"},
          {"--transports"},
          {"--seed", "", "of digits, shares and first parameters"},
          {"--timeout"},
          {"--csv"},
          {"--json", "", "write the record: machine, version, rows with the curves of the loss; -: to stdout"},
          {"--html", "", "write one page: the curves of the loss and the table"}},
      std::span<const Collective>());
  auto texts = std::make_shared<TrainTexts>();
  const auto add = [&](const char* flag, std::string& value, const char* type, const std::string& help) {
    CLI::Option* const option = command->add_option(flag, value, help)->type_name(type);
    if (!value.empty()) option->default_str(value);
    option->check(CLI::Validator(
        [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); }, ""));
  };
  add("--gradients", texts->gradients, "LIST",
      "how they are added up: per-parameter, buckets, overlapped (posted during the backward pass), ring (written from "
      "isend and recv), or all");
  add("--bucket-bytes", texts->bucket_bytes, "SIZE", "of one bucket, at most; K M G are binary");
  add("--buffers", texts->buffers, "KIND", "of the gradients: private, or shared: memory that every rank can address");
  add("--images", texts->images, "N", "to learn from, at most");
  add("--batch", texts->batch, "N", "images of one step, on all ranks together");
  add("--epochs", texts->epochs, "N", "times that all images are learned");
  add("--rate", texts->rate, "NUMBER", "of learning");
  add("--momentum", texts->momentum, "NUMBER", "of the steps, 0 to below 1");
  add("--data", texts->data, "FOLDER", "MNIST's four files, unpacked (default: digits are drawn)");
  add("--record", texts->record, "FILE", "write every call of rank 0, a line each, as a trace that can be replayed");
  command->add_flag("--quiet", texts->is_quiet, "no table and no progress: errors, the files and the exit code");
  command->callback([&action, options, texts] { action = [options, texts] { return train(*options, *texts); }; });
}

}  // namespace tutti::program
