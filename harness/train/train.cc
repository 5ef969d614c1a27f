// SPDX-License-Identifier: Apache-2.0
#include "harness/train/train.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "harness/cases/lists.h"
#include "harness/machine/clock.h"
#include "harness/statistics/statistics.h"
#include "harness/text/json_reader.h"
#include "harness/train/network.h"
#include "harness/train/replay.h"
#include "harness/train/shares.h"
#include "harness/verify/buffers.h"
#include "impl/communicator/communicator.h"
#include "impl/embed/stragglers.h"

namespace tutti::harness::train {
namespace {

constexpr std::size_t kWindow = 48;  // steps that are verified together
constexpr std::int64_t kBetweenToldNs = 200'000'000;
constexpr std::size_t kMostPoints = 512;  // of a curve
constexpr int kMostAlone = 30;            // samples of the communication alone
constexpr double kUs = 1e-3;              // in nanoseconds

/// What a rank tells the others of a step.
struct StepTold {
  std::int64_t whole_ns = 0;
  std::int64_t backward_ns = 0;  ///< until the backward pass is over
  std::int64_t behind_ns = 0;    ///< from there until the gradients are added up
  std::uint64_t hash = 0;        ///< of the sums
  double loss = 0;
};
constexpr std::size_t kToldAtOnce = Runner::kMostBytes / sizeof(StepTold);

/// What a rank found in the steps that it computed again.
struct Found {
  std::int64_t same_bits = 0;
  std::int64_t wrong = 0;
  double of_bound = 0;
  std::int64_t first_wrong = 0;  ///< step
  Reason reason;
};

/// One way and algorithm.
struct Run {
  Way way = Way::buckets;
  std::string algorithm;
};

std::vector<Run> runs_of(const TrainSpec& spec) {
  std::vector<Run> runs;
  for (const Way way : spec.ways) {
    if (way == Way::ring || spec.algorithms.empty()) {
      runs.push_back({.way = way, .algorithm = "-"});
      continue;
    }
    for (const std::string& algorithm : spec.algorithms) runs.push_back({.way = way, .algorithm = algorithm});
  }
  return runs;
}

/// The algorithm of each piece; null: the system's own.
Result<std::vector<const Algorithm*>> algorithms_for(const Run& run, const std::vector<Piece>& pieces,
                                                     const TrainSpec& spec, int ranks) {
  std::vector<const Algorithm*> algorithms(pieces.size());
  if (run.algorithm == "-") return algorithms;
  const Problem problem{.collective = Collective::all_reduce, .ranks = ranks, .ranks_per_host = spec.ranks_per_host};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(pieces[i].count * sizeof(float));
    if (run.algorithm == kAuto) {
      algorithms[i] = spec.spans_hosts ? &choose_across_hosts(problem, bytes)
                                       : &choose_algorithm(problem, spec.buffers, spec.cores, bytes);
      continue;
    }
    TUTTI_ASSIGN_OR_RETURN(algorithms[i], find_algorithm(Collective::all_reduce, run.algorithm));
  }
  return algorithms;
}

/// "one_shot", or "two_shot, one_shot".
std::string names_of(const std::vector<const Algorithm*>& algorithms) {
  std::vector<std::string_view> names;
  for (const Algorithm* const one : algorithms) {
    if (one != nullptr) append_new(names, one->name);
  }
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, "+"));
}

/// One rank's training with one way and algorithm.
class Trainee {
 public:
  Trainee(const TrainSpec& spec, const DigitSets& sets, const TrainPlace& place, Shares shares)
      : spec_(spec),
        sets_(sets),
        place_(place),
        shares_(std::move(shares)),
        serial_(sets.learned, shares_, place.world.ranks()) {}

  Status prepare(const Run& run, std::size_t number, std::size_t of);
  /// Runner 0 reports the row.
  Status run();

 private:
  [[nodiscard]] std::size_t steps() const { return static_cast<std::size_t>(spec_.epochs) * shares_.steps_of_epoch(); }
  [[nodiscard]] std::span<float> gradients() const {
    return {reinterpret_cast<float*>(memory_->payload().data()), kParameters};
  }
  Status train_step(std::size_t step);
  Status judge_window(std::size_t end);
  Status hear_of_window();
  Status measure_alone();
  Status tell(std::size_t step, double loss);
  [[nodiscard]] double accuracy();
  Status conclude();
  Status tell_trace();

  const TrainSpec& spec_;
  const DigitSets& sets_;
  const TrainPlace& place_;
  Shares shares_;
  SerialRun serial_;
  Network network_;
  Model model_, window_model_;
  std::optional<GuardedBuffer> memory_;
  std::optional<Averager> averager_;
  std::vector<TracedCall> calls_;
  TrainProgress progress_;
  TrainRow row_;
  std::vector<StepTold> window_;  // of this rank, since the last judgement
  std::vector<std::vector<float>> window_sums_;
  std::size_t window_begin_ = 0;
  std::vector<std::vector<StepTold>> all_;  // [step][rank]
  std::int64_t told_ns_ = 0;
};

Status Trainee::prepare(const Run& run, std::size_t number, std::size_t of) {
  progress_ = {.run = static_cast<std::int64_t>(number),
               .runs = static_cast<std::int64_t>(of),
               .steps = static_cast<std::int64_t>(steps())};
  const std::vector<Piece> pieces = pieces_of(run.way, spec_.bucket_bytes);
  TUTTI_ASSIGN_OR_RETURN(const auto algorithms, algorithms_for(run, pieces, spec_, place_.world.ranks()));
  row_ = {.backend = spec_.backend,
          .gradients = std::string(to_string(run.way)),
          .algorithm = run.algorithm == kAuto ? names_of(algorithms) : run.algorithm,
          .calls = static_cast<std::int64_t>(pieces.size()),
          .bytes = static_cast<std::int64_t>(kParameters * sizeof(float)),
          .steps = progress_.steps};
  row_.needs_bits = run.way == Way::ring ? place_.world.ranks() <= 2 : algorithms.front() != nullptr;
  for (const Algorithm* const one : algorithms) {
    if (one == nullptr) continue;
    TUTTI_ASSIGN_OR_RETURN(const bool is_serial, adds_serially(*one, place_.world.ranks()));
    row_.needs_bits &= is_serial;
  }
  memory_.reset();
  TUTTI_ASSIGN_OR_RETURN(memory_, GuardedBuffer::create({.bytes = kParameters * sizeof(float),
                                                         .guard_bytes = 256,
                                                         .allocator = place_.world.memory(spec_.buffers)}));
  averager_.emplace(
      place_.world, place_.runner,
      Averager::Plan{.way = run.way, .pieces = pieces, .algorithms = algorithms, .buffers = spec_.buffers},
      gradients());
  calls_.clear();
  if (spec_.is_traced && place_.runner.index() == 0) averager_->trace_into(calls_);
  model_ = {.parameters = first_parameters(spec_.seed), .velocity = std::vector<float>(kParameters)};
  window_model_ = model_;
  window_begin_ = 0;
  window_.clear();
  window_sums_.clear();
  all_.clear();
  return {};
}

Status Trainee::train_step(std::size_t step) {
  Runner& runner = place_.runner;
  runner.announce(Activity::operation);
  averager_->begin_step(step);
  const BackwardHooks hooks{.on_filled = [&](std::size_t count) { return averager_->on_filled(count); },
                            .on_pause = [&] { return averager_->on_pause(); }};
  const std::int64_t begin = monotonic_ns();
  const double loss = network_.forward(model_.parameters,
                                       {.digits = sets_.learned, .indices = shares_.batch(step, place_.world.rank())});
  TUTTI_RETURN_IF_ERROR(network_.backward(model_.parameters, gradients(), hooks));
  const std::int64_t backward = monotonic_ns();
  TUTTI_RETURN_IF_ERROR(averager_->finish());
  const std::int64_t added = monotonic_ns();
  model_.take_step(gradients(), place_.world.ranks(), spec_.rate, spec_.momentum);
  const std::int64_t end = monotonic_ns();
  runner.settle();
  window_sums_.emplace_back(gradients().begin(), gradients().end());
  window_.push_back({.whole_ns = end - begin,
                     .backward_ns = backward - begin,
                     .behind_ns = added - backward,
                     .hash = hash_of(gradients()),
                     .loss = loss});
  return tell(step, loss);
}

/// All ranks hear what every rank tells of the steps of the window.
Status Trainee::hear_of_window() {
  for (std::size_t first = 0; first < window_.size(); first += kToldAtOnce) {
    std::array<StepTold, kToldAtOnce> mine{};
    const std::size_t count = std::min(kToldAtOnce, window_.size() - first);
    std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(first), count, mine.begin());
    TUTTI_ASSIGN_OR_RETURN(const auto told, place_.runner.exchange(mine));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<StepTold>& of_step = all_.emplace_back();
      for (const auto& of_rank : told) of_step.push_back(of_rank[i]);
    }
  }
  return {};
}

Status Trainee::judge_window(std::size_t end) {
  TUTTI_RETURN_IF_ERROR(hear_of_window());
  const int ranks = place_.world.ranks();
  Found found;
  const auto note = [&](std::size_t step, const std::string& text) {
    if (found.wrong++ > 0) return;
    found.first_wrong = static_cast<std::int64_t>(step);
    found.reason = Reason::of(1, fmt::format("step {}: {}", step, text));
  };
  for (std::size_t step = window_begin_; step < end; ++step) {
    const std::vector<float>& sums = window_sums_[step - window_begin_];
    const auto& told = all_[step];
    const auto other = std::ranges::find_if(told, [&](const StepTold& one) { return one.hash != told[0].hash; });
    if (other != told.end()) {
      // From here on the ranks learn different networks: no serial run is like theirs.
      if (place_.runner.index() == 0) {
        note(step, fmt::format("rank {} has another sum than rank 0: the ranks train different networks",
                               other - told.begin()));
      }
      break;
    }
    if (static_cast<int>(step % static_cast<std::size_t>(ranks)) == place_.world.rank()) {
      const Comparison comparison = serial_.compare(window_model_.parameters, step, sums);
      found.same_bits += comparison.has_bits ? 1 : 0;
      found.of_bound = std::max(found.of_bound, comparison.of_bound);
      if (row_.needs_bits && !comparison.has_bits) {
        note(step, comparison.text());
      } else if (comparison.of_bound > 1) {
        note(step, fmt::format("{}, {:.3g} times the bound away", comparison.text(), comparison.of_bound));
      }
    }
    window_model_.take_step(sums, ranks, spec_.rate, spec_.momentum);
  }
  if (const auto damage = memory_->check_guards()) {
    note(end - 1, damage->text(memory_->payload().size()));
    memory_->restore_guards();
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Found> all, place_.runner.exchange(found));
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Found& one : all) {
    if (one.wrong > 0 && row_.wrong == 0 && one.first_wrong < first) {
      first = one.first_wrong;
      row_.reason = one.reason.text();
    }
  }
  for (const Found& one : all) {
    row_.serial_bits += one.same_bits;
    row_.wrong += one.wrong;
    row_.of_bound = std::max(row_.of_bound, one.of_bound);
  }
  window_begin_ = end;
  window_.clear();
  window_sums_.clear();
  window_model_ = model_;
  return tell_trace();
}

/// The calls of a step again, with nothing to compute: of each sample the last rank's time, as in a step.
Status Trainee::measure_alone() {
  std::vector<double> samples;
  for (int i = 0; i < kMostAlone; ++i) {
    std::ranges::fill(gradients(), 0.0F);
    TUTTI_RETURN_IF_ERROR(place_.runner.exchange(i).status());
    place_.runner.announce(Activity::operation);
    averager_->begin_step(steps());
    const std::int64_t begin = monotonic_ns();
    TUTTI_RETURN_IF_ERROR(averager_->finish());
    const std::int64_t took = monotonic_ns() - begin;
    place_.runner.settle();
    TUTTI_ASSIGN_OR_RETURN(const auto all, place_.runner.exchange(took));
    samples.push_back(static_cast<double>(std::ranges::min(all)) * kUs);
  }
  row_.alone_us = median_of(samples);
  return {};
}

Status Trainee::tell(std::size_t step, double loss) {
  if (place_.runner.index() != 0 || monotonic_ns() < told_ns_) return {};
  told_ns_ = monotonic_ns() + kBetweenToldNs;
  progress_.step = static_cast<std::int64_t>(step);
  progress_.loss = loss;
  return place_.on_progress(progress_);
}

double Trainee::accuracy() {
  constexpr std::size_t kAtOnce = 64;
  std::size_t right = 0;
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < sets_.held_out.count(); ++i) {
    indices.push_back(static_cast<std::uint32_t>(i));
    if (indices.size() < kAtOnce && i + 1 < sets_.held_out.count()) continue;
    network_.forward(model_.parameters, {.digits = sets_.held_out, .indices = indices});
    right += network_.right();
    indices.clear();
  }
  return sets_.held_out.count() == 0 ? 0 : static_cast<double>(right) / static_cast<double>(sets_.held_out.count());
}

Status Trainee::conclude() {
  std::vector<double> whole, computing, communication, share, late, losses;
  embed::Arrivals arrivals;
  for (std::size_t step = 0; step < all_.size(); ++step) {
    const std::vector<StepTold>& told = all_[step];
    double loss = 0, behind = 0;
    for (const StepTold& one : told) {
      loss += one.loss;
      behind += static_cast<double>(one.behind_ns);
    }
    const auto ranks = static_cast<double>(told.size());
    losses.push_back(loss / ranks);
    if (step == 0 && all_.size() > 1) continue;  // connections and plans are made in it
    const auto slowest = static_cast<double>(std::ranges::max(told, {}, &StepTold::whole_ns).whole_ns);
    const auto least = static_cast<double>(std::ranges::min(told, {}, &StepTold::behind_ns).behind_ns);
    whole.push_back(slowest * kUs);
    communication.push_back(least * kUs);
    computing.push_back(static_cast<double>(std::ranges::max(told, {}, &StepTold::backward_ns).backward_ns) * kUs);
    share.push_back(least / slowest);
    late.push_back((behind / ranks - least) / slowest);
    // The sums are there at the same time on all ranks: who had to wait least came last.
    std::vector<double> came;
    for (const StepTold& one : told) came.push_back(-static_cast<double>(one.behind_ns));
    arrivals.add(came, slowest);
  }
  const std::vector<embed::Straggler> stragglers = stragglers_of(arrivals);
  if (!stragglers.empty() && stragglers.front().is_one) {
    row_.straggler = stragglers.front().rank;
    row_.straggler_last = stragglers.front().last;
    row_.straggler_share = stragglers.front().share;
  }
  row_.step_us = median_of(whole);
  row_.computing_us = median_of(computing);
  row_.communication_us = median_of(communication);
  row_.share = median_of(share);
  row_.late = median_of(late);
  if (row_.gradients == to_string(Way::overlapped) && row_.alone_us > 0) {
    row_.hidden = std::max(0.0, 1 - row_.communication_us / row_.alone_us);
  }
  const auto mean = [&](std::size_t first, std::size_t count) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += losses[i];
    return sum / static_cast<double>(count);
  };
  const std::size_t each = (losses.size() + kMostPoints - 1) / kMostPoints;
  row_.steps_of_loss = static_cast<std::int64_t>(each);
  for (std::size_t i = 0; i < losses.size(); i += each)
    row_.losses.push_back(mean(i, std::min(each, losses.size() - i)));
  const std::size_t of_epoch = shares_.steps_of_epoch();
  for (std::size_t i = 0; i < losses.size(); i += of_epoch) row_.epoch_losses.push_back(mean(i, of_epoch));
  row_.accuracy = accuracy();
  row_.parameters = fmt::format("{:016x}", hash_of(model_.parameters));
  return place_.on_row(row_);
}

Status Trainee::tell_trace() {
  if (calls_.empty() || !place_.on_trace) return {};
  std::string lines;
  for (const TracedCall& call : calls_) {
    lines += fmt::format("{},,{},float,{},{},,{:.3f}\n", call.step, call.operation,
                         call.operation == to_string(Collective::all_reduce) ? "sum" : "", call.bytes, call.gap_us);
  }
  calls_.clear();
  return place_.on_trace(lines);
}

Status Trainee::run() {
  Status refusal = averager_->supports();
  const auto refused = spec_.refusals.find(row_.algorithm);
  if (refusal.is_ok() && refused != spec_.refusals.end()) refusal = error(Code::unavailable, "{}", refused->second);
  TUTTI_ASSIGN_OR_RETURN(const Reason reason, place_.runner.first_reason(refusal));
  if (reason.is_any()) {
    row_.skipped = reason.text();
    return place_.runner.index() == 0 ? place_.on_row(row_) : Status();
  }
  for (std::size_t step = 0; step < steps(); ++step) {
    TUTTI_RETURN_IF_ERROR(train_step(step));
    if (window_.size() == kWindow || step + 1 == steps()) TUTTI_RETURN_IF_ERROR(judge_window(step + 1));
  }
  averager_->trace_nothing();
  TUTTI_RETURN_IF_ERROR(measure_alone());
  return place_.runner.index() == 0 ? conclude() : Status();
}

template <class Value>
void read_value(const nlohmann::json& json, Value& value) {
  json.get_to(value);
}
/// JSON has no infinity and no NaN: they are written as null.
void read_value(const nlohmann::json& json, double& value) {
  value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}
void read_value(const nlohmann::json& json, std::vector<double>& values) {
  for (const nlohmann::json& one : json) read_value(one, values.emplace_back());
}

/// That all ranks have the same images. Errors: mismatch.
Status agree_on_images(const DigitSets& sets, Runner& runner) {
  std::uint64_t mine = sets.learned.count();
  for (const auto* const bytes : {&sets.learned.pixels, &sets.learned.labels}) {
    for (const std::uint8_t byte : *bytes) mine = mine * 31 + byte;
  }
  TUTTI_ASSIGN_OR_RETURN(const auto all, runner.exchange(mine));
  const auto other = std::ranges::find_if(all, [&](std::uint64_t one) { return one != all.front(); });
  if (other == all.end()) return {};
  return error(Code::mismatch, "rank {} has other images than rank 0: has a file changed just now?",
               other - all.begin());
}

}  // namespace

Status run_training(const TrainSpec& spec, const DigitSets& sets, const TrainPlace& place) {
  TUTTI_RETURN_IF_ERROR(agree_on_images(sets, place.runner));
  const Shares shares(
      {.images = sets.learned.count(), .ranks = place.world.ranks(), .batch = spec.batch, .seed = spec.seed});
  Trainee trainee(spec, sets, place, shares);
  const std::vector<Run> runs = runs_of(spec);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(trainee.prepare(runs[i], i, runs.size()));
    TUTTI_RETURN_IF_ERROR(trainee.run());
  }
  return {};
}

std::string to_json(const TrainRow& row) {
  nlohmann::json json;
  visit_fields(std::type_identity<TrainRow>(), [&](const char* word, auto member) { json[word] = row.*member; });
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<TrainRow> train_row_from_json(std::string_view text) {
  return read_json(Code::io, "a row of a training", text, [](const nlohmann::json& json) -> Result<TrainRow> {
    TrainRow row;
    visit_fields(std::type_identity<TrainRow>(),
                 [&](const char* word, auto member) { read_value(json.at(word), row.*member); });
    return row;
  });
}

std::string to_json(const TrainProgress& progress) {
  return nlohmann::json{{"run", progress.run},
                        {"runs", progress.runs},
                        {"step", progress.step},
                        {"steps", progress.steps},
                        {"loss", progress.loss}}
      .dump();
}

Result<TrainProgress> train_progress_from_json(std::string_view text) {
  return read_json(Code::io, "a training's progress", text, [](const nlohmann::json& json) -> Result<TrainProgress> {
    TrainProgress progress{.run = json.value("run", std::int64_t{0}),
                           .runs = json.value("runs", std::int64_t{0}),
                           .step = json.value("step", std::int64_t{0}),
                           .steps = json.value("steps", std::int64_t{0})};
    read_value(json.at("loss"), progress.loss);
    return progress;
  });
}

}  // namespace tutti::harness::train
