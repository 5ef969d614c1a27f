// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/precision.h"

#include <algorithm>
#include <vector>

#include "harness/measure/check.h"

namespace tutti::harness::measure {
namespace {

constexpr std::uint64_t kSalt = 1;  // the same for all systems

/// One runner's part, as it is exchanged.
struct PrecisionPart {
  Accuracy accuracy;
  std::uint64_t fingerprint = 0;  ///< of its first rank's result
  std::int32_t group = 0;
  bool is_same_on_ranks = true;  ///< of this runner
  bool is_same_on_repeats = true;
};

/// Errors of the ranks of this runner. A rank with the bits of the first one needs no look of its own.
Damage judge(const Runner& runner, const Variant& variant, const std::vector<std::uint64_t>& fingerprints,
             PrecisionPart& part) {
  const Problem problem = variant.instance().problem();
  Damage damage;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    if (output_blocks(problem, runner.ranks()[i]) == 0) continue;
    const bool is_known = has_one_result(problem.collective) && i > 0 && fingerprints[i] == fingerprints[0];
    if (!is_known) add_operation(damage, variant.verify_rounding(i, kMostJudged, part.accuracy));
  }
  return damage;
}

Result<Damage> repeat(Runner& runner, Variant& variant, PrecisionPart& part) {
  Damage damage;
  std::vector<std::uint64_t> first;
  RankTimes times;
  for (int time = 0; time < kRepeats; ++time) {
    variant.refill(kSalt);
    variant.announce();
    TUTTI_RETURN_IF_ERROR(variant.run(times));
    runner.settle();
    std::vector<std::uint64_t> fingerprints = variant.result_fingerprints();
    if (time > 0) {
      part.is_same_on_repeats &= fingerprints == first;
      continue;
    }
    damage = judge(runner, variant, fingerprints, part);
    first = std::move(fingerprints);
  }
  part.fingerprint = first.front();
  part.is_same_on_ranks = std::ranges::count(first, first.front()) == std::ssize(first);
  return damage;
}

}  // namespace

bool has_precision(const Cell& cell) { return is_rounded(Values::random, cell.dtype, cell.op); }

Result<Precision> measure_precision(Runner& runner, Variant& variant) {
  PrecisionPart mine{.group = runner.group()};
  const Values values = variant.values();
  variant.set_values(Values::random);
  const Result<Damage> found = repeat(runner, variant, mine);
  variant.set_values(values);
  TUTTI_RETURN_IF_ERROR(found.status());
  Precision precision;
  TUTTI_ASSIGN_OR_RETURN(precision.damage, damage_of_all(runner, variant.instance(), found.value()));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<PrecisionPart> parts, runner.exchange(mine));
  const bool has_one = has_one_result(variant.instance().collective);
  precision.accuracy.emplace();
  precision.is_same_on_repeats = true;
  if (has_one) precision.is_same_on_ranks = true;
  for (const PrecisionPart& part : parts) {
    if (part.group != parts.front().group) continue;  // another sum
    precision.accuracy->add(part.accuracy);
    precision.is_same_on_repeats &= part.is_same_on_repeats;
    const bool is_same = part.is_same_on_ranks && part.fingerprint == parts.front().fingerprint;
    if (has_one) *precision.is_same_on_ranks &= is_same;
  }
  return precision;
}

}  // namespace tutti::harness::measure
