// SPDX-License-Identifier: Apache-2.0
// One schedule proved in all its forms, and its own statements about itself checked.
#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "impl/prove/forms.h"
#include "impl/prove/prove.h"
#include "impl/prove/reasons.h"
#include "impl/schedule/segment.h"
#include "impl/types/counted.h"

namespace tutti {
namespace {

/// Slices of a unit in the forms that have several. On many ranks two do. A third one meets what the second one met,
/// and the plans of four would be most of the time that a proof takes.
int several_slices(int ranks) {
  constexpr int kManyRanks = 33;
  return ranks < kManyRanks ? kMostSlicesOfForms : 2;
}

/// Units of one slice are proved out of place on every number of ranks. Forms that differ only in what binding makes of
/// the same steps are four parts. A part has either several slices, or a single element, a factor and lengths, and it
/// is out of place or in place. More than 48 ranks get one part in turn, each part on a quarter of the even and of the
/// odd numbers. With a part in place go units of one slice in place. Numbers that 8 divides are among those; powers of
/// two, on which some algorithms do what they do nowhere else, get all parts.
bool has_turn(int ranks, bool has_slices, bool is_in_place) {
  constexpr int kMostRanksWithAll = 48;
  const int part = (has_slices ? 0 : 2) + (is_in_place ? 1 : 0);
  return ranks <= kMostRanksWithAll || std::has_single_bit(static_cast<unsigned>(ranks)) ||
         (ranks + ranks / 4 + 1) % 4 == part;
}

bool is_proved(int ranks, int slices, bool is_in_place) {
  if (slices != 1) return has_turn(ranks, slices > 1, is_in_place);
  return !is_in_place || has_turn(ranks, true, true) || has_turn(ranks, false, true);
}

Status refuted(const std::string& subject, const std::vector<Finding>& findings) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) text += "\n  " + to_string(findings[i]);
  return error(Code::refuted, "{}:{}", subject, text);
}

Status check_cost(const Schedule& schedule, const DerivedCost& derived) {
  // The depth is the problem's, so a rank whose own steps are wrong is named first.
  for (const bool counts_depth : {false, true}) {
    for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
      Cost is = derived.costs[static_cast<std::size_t>(rank)];
      const Cost stated = schedule.cost(rank);
      const std::int64_t depth = is.depth;
      if (!counts_depth) is.depth = stated.depth;
      if (is == stated) continue;
      return error(
          Code::refuted,
          "{}: rank {}: the cost formula says {} steps, {} messages, {} units, depth {}; the steps have {}, {}, {}, {}",
          describe(schedule), rank, stated.steps, stated.messages, stated.units, stated.depth, is.steps, is.messages,
          is.units, depth);
    }
  }
  return {};
}

/// Every rank's only segment.
Result<std::vector<Plan>> bind_form(const Schedule& schedule, BindRequest request) {
  std::vector<Plan> plans;
  for (request.rank = 0; request.rank < schedule.problem.ranks; ++request.rank) {
    TUTTI_ASSIGN_OR_RETURN(BoundCall call, bind(schedule, request));
    plans.push_back(std::move(call.full_segments > 0 ? call.full : call.tail));
  }
  return plans;
}

bool has_same_ops(std::span<const Plan> a, std::span<const Plan> b) {
  return std::ranges::equal(a, b, [](const Plan& x, const Plan& y) { return std::ranges::equal(x.ops(), y.ops()); });
}

class ScheduleProver {
 public:
  explicit ScheduleProver(const Schedule& schedule) : schedule_(schedule) {}

  Result<ScheduleProof> run();

 private:
  /// A form whose plans are kept, for those of another size may be the same.
  struct Kept {
    Form form;
    std::vector<Plan> plans;
    Proved proved;
  };

  Status note(Status status);
  Status prove_placement(int slices, bool is_in_place);
  Status prove_buffers(const Form& form);
  Result<Proved> prove_form(const Form& form, std::span<const Plan> plans);
  void check_slots(const Form& form, const PlanSet& set);
  Status prove_longer_turns(Form form, std::span<const Plan> plans);
  Status prove_uneven(bool is_in_place);
  [[nodiscard]] const Proved* kept_like(const Form& form) const;

  const Schedule& schedule_;
  ScheduleProof result_;
  Reasons reasons_;
  bool has_refuted_form_ = false;  ///< so that labels are not those of every form
  std::vector<Kept> kept_;
  int derived_ = 0;  ///< slices per unit for which the least number of slots was derived last
};

/// Goes on where a form is refuted: the next one may be refuted for another reason.
Status ScheduleProver::note(Status status) {
  has_refuted_form_ |= status.code() == Code::refuted;
  return reasons_.note(std::move(status));
}

Result<ScheduleProof> ScheduleProver::run() {
  const DerivedCost derived = derive_cost(schedule_);
  if (!derived.findings.empty()) return refuted(describe(schedule_), derived.findings);
  reasons_.add(check_cost(schedule_, derived));
  const int ranks = schedule_.problem.ranks;
  for (const int slices : {1, several_slices(ranks), 0}) {
    for (const bool is_in_place : {false, true}) {
      if (is_proved(ranks, slices, is_in_place)) TUTTI_RETURN_IF_ERROR(note(prove_placement(slices, is_in_place)));
    }
  }
  for (const bool is_in_place : {false, true}) {
    if (!schedule_.takes_counts || !has_turn(ranks, false, is_in_place)) continue;
    TUTTI_RETURN_IF_ERROR(note(prove_uneven(is_in_place)));
  }
  // Few ranks hear of each other where more would not: two that answer each other, five around a ring along which four
  // slices pass the word on. To state less is safe.
  constexpr int kFewRanks = kMostSlicesOfForms + 1;
  if (ranks > kFewRanks && !has_refuted_form_ && result_.labels.synchronises && !schedule_.synchronises) {
    reasons_.add(error(Code::refuted, "{}: synchronises is true, but false is stated", describe(schedule_)));
  }
  TUTTI_RETURN_IF_ERROR(reasons_.status());
  return result_;
}

Status ScheduleProver::prove_placement(int slices, bool is_in_place) {
  const Form shared{.slices = slices, .is_in_place = is_in_place, .buffers = Buffers::shared};
  TUTTI_RETURN_IF_ERROR(note(prove_buffers(shared)));
  // The plans are the same, and so is their proof, where nothing is exposed that could be staged, or all is anyway.
  const bool exposes = schedule_.shape.exposes_input || schedule_.shape.exposes_output;
  if (exposes && !is_staged(schedule_, request_of(schedule_, shared))) {
    TUTTI_RETURN_IF_ERROR(
        note(prove_buffers({.slices = slices, .is_in_place = is_in_place, .buffers = Buffers::private_})));
  } else {
    ++result_.proofs;
  }
  const Problem& problem = schedule_.problem;
  if (slices != 1 || !is_reducing(problem.collective) || !has_turn(problem.ranks, false, is_in_place)) return {};
  return prove_buffers({.slices = 1, .is_in_place = is_in_place, .buffers = Buffers::shared, .op = Op::premul_sum});
}

Status ScheduleProver::prove_buffers(const Form& form) {
  TUTTI_ASSIGN_OR_RETURN(auto plans, bind_form(schedule_, request_of(schedule_, form)));
  TUTTI_ASSIGN_OR_RETURN(const Proved proved, prove_form(form, plans));
  if (form.buffers == Buffers::shared) TUTTI_RETURN_IF_ERROR(prove_longer_turns(form, plans));
  if (form.slices == 1 && form.op != Op::premul_sum) kept_.push_back({form, std::move(plans), proved});
  return {};
}

/// Also that not one slot less would do, where a number of slices is met for the first time.
Result<Proved> ScheduleProver::prove_form(const Form& form, std::span<const Plan> plans) {
  const BindRequest request = request_of(schedule_, form);
  const std::int64_t block_bytes = request.count * static_cast<std::int64_t>(size_of(request.dtype));
  const PlanSet set{.schedule = &schedule_,
                    .plans = plans,
                    .slots = request.resources.slots,
                    .slot_bytes = kFormSlotBytes,
                    .block_bytes = block_bytes,
                    .block_stride = block_bytes};
  const Proof proof = prove_plans(set, kept_like(form));
  if (!proof.holds()) return refuted(describe(schedule_, form), proof.findings);
  if (schedule_.synchronises && !proof.labels.synchronises) {
    reasons_.add(error(Code::refuted, "{}: synchronises is false, but true is stated", describe(schedule_, form)));
  }
  if (result_.proofs == 0) result_.labels = proof.labels;
  result_.labels.synchronises = result_.labels.synchronises && proof.labels.synchronises;
  ++result_.proofs;
  check_slots(form, set);
  return Proved{.set = set, .labels = proof.labels};
}

void ScheduleProver::check_slots(const Form& form, const PlanSet& set) {
  if (form.slices == 0 || form.slices == derived_) return;
  const int slices = set.plans.front().header().slices;
  const int stated = slices == 0 ? 0 : schedule_.least_slots(slices);
  const int derived = derive_least_slots(set);
  if (derived != stated) {
    reasons_.add(error(Code::refuted, "{}: with messages of {} {} are needed, but {} {} stated",
                       describe(schedule_, form), counted(slices, "slice"), counted(derived, "slot"), stated,
                       stated == 1 ? "is" : "are"));
  }
  if (derived_ == 0) result_.labels.least_slots = derived;
  derived_ = form.slices;
}

/// What `form` may be in another size.
const Proved* ScheduleProver::kept_like(const Form& form) const {
  for (const Kept& kept : kept_) {
    if (kept.form.is_in_place == form.is_in_place && kept.form.buffers == form.buffers) return &kept.proved;
  }
  return nullptr;
}

/// With twice the slots, MOVEs that take turns go two slices at a time. `plans` are those of `form`: where they are the
/// same, nobody takes turns, and more slots stop nobody. Few ranks show it.
Status ScheduleProver::prove_longer_turns(Form form, std::span<const Plan> plans) {
  if (form.slices < 3) return {};
  form.slots_per_need = 2;
  TUTTI_ASSIGN_OR_RETURN(const auto longer, bind_form(schedule_, request_of(schedule_, form)));
  return has_same_ops(longer, plans) ? Status() : prove_form(form, longer).status();
}

/// The v form of a schedule that takes counts.
Status ScheduleProver::prove_uneven(bool is_in_place) {
  std::vector<BlockTable> blocks;
  for (int rank = 0; rank < schedule_.problem.ranks; ++rank) {
    TUTTI_ASSIGN_OR_RETURN(BlockTable table, uneven_blocks(schedule_.problem, rank));
    blocks.push_back(std::move(table));
  }
  const BindRequest request =
      request_of(schedule_, {.slices = 1, .is_in_place = is_in_place, .buffers = Buffers::private_});
  TUTTI_ASSIGN_OR_RETURN(const Proof proof, prove(schedule_, request, blocks));
  ++result_.proofs;
  if (proof.holds()) return {};
  return refuted(fmt::format("{}, lengths of a v form, {} place", describe(schedule_), is_in_place ? "in" : "out of"),
                 proof.findings);
}

}  // namespace

Result<ScheduleProof> prove_schedule(const Schedule& schedule) { return ScheduleProver(schedule).run(); }

}  // namespace tutti
