// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/comparison.h"

#include <cmath>
#include <cstring>

#include "harness/verify/suspect.h"

namespace tutti::harness::verify {
namespace {

bool is_nan(std::uint64_t bits, Dtype dtype) {
  return visit_dtype(dtype, [bits]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(value_of<T>(bits));
    } else if constexpr (std::is_integral_v<T>) {
      return false;
    } else {
      return std::isnan(value_of<T>(bits).to_float());
    }
  });
}

}  // namespace

void Comparison::compare(Count first, std::span<const std::byte> expected, std::span<const std::byte> actual) {
  const std::size_t element_bytes = size_of(dtype_);
  add_checked(static_cast<Count>(actual.size() / element_bytes));
  if (actual.empty() || std::memcmp(expected.data(), actual.data(), actual.size()) == 0) return;
  for (std::size_t at = 0; at < actual.size(); at += element_bytes) {
    const WrongElement element{.index = first + static_cast<Count>(at / element_bytes),
                               .expected = element_bits(expected.subspan(at), dtype_),
                               .actual = element_bits(actual.subspan(at), dtype_)};
    if (!is_right(element)) add_wrong(element);
  }
}

bool Comparison::is_right(const WrongElement& element) const {
  if (element.expected == element.actual) return true;
  return is_any_nan_right_ && !is_poison(element) && is_nan(element.expected, dtype_) && is_nan(element.actual, dtype_);
}

bool Comparison::holds_poison(const WrongElement& element) const {
  const std::uint64_t unlike_poison = element.actual ^ poison_[element.index % 2];
  const std::uint64_t unlike_expected = element.actual ^ element.expected;
  for (std::size_t byte = 0; byte < size_of(dtype_); ++byte) {
    const std::uint64_t mask = std::uint64_t{0xff} << (8 * byte);
    if ((unlike_poison & mask) != 0 && (unlike_expected & mask) != 0) return false;
  }
  return true;
}

bool Comparison::add_wrong(const WrongElement& element) {
  const bool is_first = result_.wrong == 0;
  if (is_first) {
    result_.first_bad = element.index;
    result_.expected = element_text(element.expected, dtype_);
    result_.actual = element_text(element.actual, dtype_);
  }
  ++result_.wrong;
  result_.last_bad = element.index;
  if (holds_poison(element)) ++poisoned_;
  if (wrong_.size() < WrongOutput::kMost) wrong_.push_back(element);
  return is_first;
}

void Comparison::take_counts(const CheckResult& result, Count poisoned) {
  result_.checked = result.checked;
  result_.wrong = result.wrong;
  result_.last_bad = result.last_bad;
  poisoned_ = poisoned;
}

CheckResult Comparison::judged(const Operation& operation, int rank, const FetchOutput& output) {
  if (result_.is_ok()) return result_;
  const Diagnosis likely =
      diagnose(operation, rank, {.result = result_, .wrong = wrong_, .poisoned = poisoned_, .output = output});
  result_.diagnosis = likely.text;
  result_.tells_cause = likely.is_cause;
  return result_;
}

}  // namespace tutti::harness::verify
