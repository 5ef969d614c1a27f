// SPDX-License-Identifier: Apache-2.0
#include "harness/faults/trial.h"

#include <algorithm>
#include <array>
#include <random>

#include "harness/faults/early_leave.h"
#include "harness/text/json_reader.h"

namespace tutti::harness::faults {
namespace {

constexpr int kDraws = 200;
constexpr std::array<Count, 5> kCounts{16, 67, 300, 1023, 5000};  // the last is more than one slice of wide types
constexpr int kRounds = 2;
/// Operations before a message is dropped, so that what lies in slots and scratch is an earlier operation's of the
/// case.
constexpr int kWarmUps = 8;

struct Draw {
  Case one;
  Injection injection;
};

/// The same on all runners.
Draw draw(const Case& what, Fault fault, std::uint64_t seed, int number) {
  constexpr std::array<std::string_view, 8> kPatternNames{"ramp", "one-heavy", "zeros", "random",
                                                          "zipf", "rotating",  "burst", "empty"};
  std::mt19937_64 random(seed * 1000003 + static_cast<std::uint64_t>(number));
  for (const auto part : {static_cast<std::uint64_t>(fault), static_cast<std::uint64_t>(what.collective),
                          static_cast<std::uint64_t>(what.dtype), static_cast<std::uint64_t>(what.op)}) {
    random.seed(random() + part);
  }
  Draw drawn{.one = what, .injection = {.fault = fault, .input_seed = seed}};
  Case& one = drawn.one;
  const auto algorithms = algorithms_of(one.collective);
  const Algorithm& algorithm = *algorithms[random() % algorithms.size()];
  one.algorithm = algorithm.name;
  const auto ranks = static_cast<std::uint64_t>(one.ranks);
  if (is_rooted(one.collective)) one.root = static_cast<int>(random() % ranks);
  const Count count = kCounts[random() % kCounts.size()];
  const auto element = static_cast<std::int64_t>(size_of(one.dtype));
  if (has_counts(one.collective)) {
    one.counts = counts_of_name(kPatternNames[random() % kPatternNames.size()]).value();
    // In all rows of what is drawn together there are as many as each rank has otherwise.
    const bool is_of_pairs = is_drawn(one.counts.pattern) && divides_both(one.collective);
    set_bytes(one, count * (is_of_pairs ? 1 : one.ranks) * element);
  } else if (has_data(one.collective)) {
    one.count = count;
    one.bytes = buffer_bytes(one.problem(), count, size_of(one.dtype));
  }
  drawn.injection.seed = random();
  drawn.injection.by = random() % 2 == 0 ? 1 : -1;
  const auto rank = static_cast<int>(random() % ranks);  // and then each in turn
  drawn.injection.rank = (rank + number) % one.ranks;
  const bool is_no_change = fault == Fault::wrong_root && drawn.injection.rank == one.root;
  if (is_no_change) drawn.injection.rank = (one.root + 1) % one.ranks;
  const bool is_in_place = random() % 2 == 0, is_shared = random() % 2 == 0;
  one.is_in_place = is_in_place && fits_in_place(fault, one.collective) &&
                    (!has_counts(one.collective) || blocks_of(one).is_same_both_ways());
  const bool peers_write_output = algorithm.shape(one.problem()).exposes_output;
  if (is_shared && fits_shared(fault, one.collective, peers_write_output)) one.buffers = Buffers::shared;
  return drawn;
}

/// What rounds of operations on one backend came to, on all runners.
struct Rounds {
  Damage damage;
  std::vector<std::vector<std::uint64_t>> footprints;  ///< of each operation, on this runner
  bool is_left_early = false;                          ///< barriers, by a rank of this runner
};

class Trial {
 public:
  Trial(const TrialPlace& place, const Case& what, Fault fault, std::uint64_t seed)
      : place_(place), what_(what), seed_(seed) {
    result_.fault = fault;
  }

  Result<TrialResult> run() {
    result_.text = why_not_applicable(result_.fault, what_);
    if (result_.text.empty() && place_.is_on_gpu) result_.text = why_not_on_gpu(result_.fault);
    if (!result_.text.empty()) return result_;
    result_.outcome = TrialOutcome::not_injected;
    result_.text = "no plan had a place for it";
    for (int number = 0; number < kDraws && result_.outcome == TrialOutcome::not_injected; ++number) {
      ++result_.draws;
      Draw drawn = draw(what_, result_.fault, seed_, number);
      if (place_.is_on_gpu) drawn.one.buffers = Buffers::private_;  // shared ones lie on the host
      TUTTI_RETURN_IF_ERROR(try_draw(drawn));
    }
    return result_;
  }

 private:
  Runner& runner() const { return place_.runner; }

  Status try_draw(const Draw& drawn) {
    result_.case_id = case_id(drawn.one);
    place_.injector.arm(drawn.injection);
    salt_ = 0;
    const bool has_history = result_.fault == Fault::dropped_message;
    Result<Variant> made =
        Variant::create(runner(), {.backend = has_history ? static_cast<Backend&>(place_.own) : place_.injector,
                                   .memory = place_.memory,
                                   .instance = drawn.one,
                                   .seed = seed_,
                                   .misaligns = true,
                                   .takes_elements = place_.takes_elements});
    Status status = made.status();
    if (has_history) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_made, agree(status, true));
      if (!is_made) return {};
      TUTTI_RETURN_IF_ERROR(rounds(made.value(), place_.own, kWarmUps).status());
      status = made.value().prepare(place_.injector);
    }
    TUTTI_ASSIGN_OR_RETURN(const bool is_broken, agree(status, place_.injector.is_injected()));
    return is_broken ? compare(made.value()) : Status();
  }

  /// The broken case, and then the right one on the same data.
  Status compare(Variant& variant) {
    const std::uint64_t before = salt_;
    TUTTI_ASSIGN_OR_RETURN(const Rounds broken, rounds(variant, place_.injector, kRounds));
    TUTTI_RETURN_IF_ERROR(variant.prepare(place_.own));
    variant.restore_guards();
    salt_ = before;
    TUTTI_ASSIGN_OR_RETURN(const Rounds right, rounds(variant, place_.own, kRounds));
    if (right.damage.wrong > 0) {
      result_.outcome = TrialOutcome::wrong_without;
      result_.text = right.damage.text;
      return {};
    }
    const bool has_changed = broken.footprints != right.footprints || (broken.is_left_early && !right.is_left_early);
    TUTTI_ASSIGN_OR_RETURN(const std::vector<char> changes, runner().exchange(static_cast<char>(has_changed ? 1 : 0)));
    if (std::ranges::find(changes, 1) == changes.end()) {
      result_.text = "it changed nothing, in any draw";
      return {};
    }
    result_.outcome = broken.damage.wrong > 0 ? TrialOutcome::caught : TrialOutcome::missed;
    result_.text = broken.damage.wrong > 0 ? broken.damage.text : "the verifier has found nothing";
    result_.names_cause = names_cause(result_.fault, result_.text);
    return {};
  }

  /// Of the variant, which runs on `backend`.
  Result<Rounds> rounds(Variant& variant, Backend& backend, int count) {
    Rounds all;
    if (!has_data(what_.collective)) {
      TUTTI_ASSIGN_OR_RETURN(all.damage, check_barrier_rule(runner(), variant, place_.sight));
      const std::vector<RankBuffers> none(runner().ranks().size());
      TUTTI_ASSIGN_OR_RETURN(const auto calls, backend.prepare(variant.instance(), none));
      TUTTI_ASSIGN_OR_RETURN(all.is_left_early, leaves_early(runner(), *calls));
    }
    for (int round = 1; round <= count && has_data(what_.collective); ++round) {
      place_.injector.set_salt(++salt_);
      const Look look{.salt = salt_,
                      .sight = place_.sight,
                      .is_last = round == count,
                      .footprints = &all.footprints.emplace_back()};
      TUTTI_ASSIGN_OR_RETURN(const Damage found, check_operation(runner(), variant, look));
      add_operation(all.damage, found);
    }
    TUTTI_ASSIGN_OR_RETURN(all.damage, damage_of_all(runner(), what_, all.damage));
    return all;
  }

  /// Whether all runners are ready, and the fault is in the case on one of them; where some are not, the text says why.
  Result<bool> agree(const Status& mine, bool is_injected) {
    struct Readiness {
      Reason refusal;
      bool is_injected = false;
    };
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Readiness> all,
                           runner().exchange(Readiness{.refusal = Reason::of(mine), .is_injected = is_injected}));
    const Reason& refusal = first_reason(all, &Readiness::refusal);
    if (refusal.is_any()) result_.text = refusal.text();
    return !refusal.is_any() && std::ranges::any_of(all, &Readiness::is_injected);
  }

  const TrialPlace& place_;
  const Case& what_;
  std::uint64_t seed_;
  std::uint64_t salt_ = 0;
  TrialResult result_;
};

constexpr std::array<std::string_view, 5> kOutcomes{"caught", "missed", "not applicable", "not injected",
                                                    "wrong without it"};

}  // namespace

std::string_view to_string(TrialOutcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

std::string to_json(const TrialResult& result) {
  return nlohmann::json{{"fault", to_string(result.fault)},
                        {"outcome", to_string(result.outcome)},
                        {"case", result.case_id},
                        {"draws", result.draws},
                        {"text", result.text},
                        {"names_cause", result.names_cause}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<TrialResult> trial_from_json(std::string_view text) {
  return read_json(Code::io, "a trial's result", text, [](const nlohmann::json& json) -> Result<TrialResult> {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Fault> fault, parse_faults(json.value("fault", "")));
    const auto outcome = std::ranges::find(kOutcomes, json.value("outcome", ""));
    if (outcome == kOutcomes.end()) return error(Code::io, "a trial's result has no outcome");
    return TrialResult{.fault = fault.front(),
                       .outcome = static_cast<TrialOutcome>(outcome - kOutcomes.begin()),
                       .case_id = json.value("case", ""),
                       .draws = json.value("draws", 0),
                       .text = json.value("text", ""),
                       .names_cause = json.value("names_cause", false)};
  });
}

Case longest_draw(const Case& what) {
  Case one = what;
  if (!has_data(one.collective)) return one;
  if (has_counts(one.collective)) one.counts = {.pattern = Pattern::random, .name = "random"};
  one.buffers = Buffers::shared;
  const std::int64_t block = kCounts.back() * static_cast<std::int64_t>(size_of(one.dtype));
  set_bytes(one, block * one.ranks);
  return one;
}

Result<TrialResult> try_fault(const TrialPlace& place, const Case& what, Fault fault, std::uint64_t seed) {
  return Trial(place, what, fault, seed).run();
}

}  // namespace tutti::harness::faults
