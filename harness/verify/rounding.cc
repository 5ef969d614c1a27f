// SPDX-License-Identifier: Apache-2.0
#include "harness/verify/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/verify/accumulation.h"
#include "harness/verify/comparison.h"
#include "harness/verify/input_values.h"
#include "harness/verify/suspect.h"

namespace tutti::harness::verify {
namespace {

constexpr Count kReferences = 1024;  // of a chunk

/// The sum or the product of doubles, with what was rounded away, and the sum of their magnitudes.
class Exact {
 public:
  explicit Exact(double first) : high_(first), magnitude_(std::abs(first)) {}

  void add(double value) {  // two-sum
    const double sum = high_ + value;
    const double of_value = sum - high_;
    low_ += (high_ - (sum - of_value)) + (value - of_value);
    high_ = sum;
    magnitude_ += std::abs(value);
  }
  void multiply(double value) {
    const double product = high_ * value;
    low_ = low_ * value + std::fma(high_, value, -product);
    high_ = product;
    magnitude_ = std::abs(product);
  }
  void divide(double by) {
    const double quotient = high_ / by;
    low_ = (std::fma(-quotient, by, high_) + low_) / by;
    high_ = quotient;
    magnitude_ /= by;
  }
  /// `relative`: the error that is allowed, as a share of the magnitudes.
  [[nodiscard]] Reference reference(double relative, double absolute) const {
    return {.high = high_, .low = low_, .bound = relative * magnitude_ + absolute};
  }

 private:
  double high_;
  double low_ = 0;
  double magnitude_;
};

/// Operations that one value passes through at most, each with its rounding.
template <class T>
int roundings_of(Op op, int ranks) {
  if (ranks == 1) return 0;
  if (op == Op::prod) return std::min(ranks, static_cast<int>(kRandomFactors<T>)) - 1;
  return op == Op::avg ? ranks : ranks - 1;
}

/// The share of the magnitudes that an error may be.
template <class T>
double relative_bound(Op op, int ranks) {
  const double of_type = std::ldexp(1.0, -Format<T>::kMantissaBits - 1);
  const double of_float = std::is_floating_point_v<T> ? 0 : std::ldexp(1.0, -24);
  const double each = std::log1p(of_type) + std::log1p(of_float);
  return std::expm1(roundings_of<T>(op, ranks) * each) + ranks * std::ldexp(1.0, -100);
}

template <class T>
constexpr int kLeastExponent = 1 - bias_of<T>() - Format<T>::kMantissaBits;  // of the least subnormal

template <class T>
double number(T value) {
  return static_cast<double>(Accumulation<T>::load(value));
}

/// `value` in T: what is shown as expected.
template <class T>
T nearest(double value) {
  return Accumulation<T>::store(static_cast<typename Accumulation<T>::Type>(value));
}

template <class T>
double ulp_of(double value) {
  const int exponent = value == 0 ? kLeastExponent<T> : std::ilogb(value) - Format<T>::kMantissaBits;
  return std::ldexp(1.0, std::max(exponent, kLeastExponent<T>));
}

template <class T>
void fill_references(std::span<Reference> references, const Operation& operation, const Origin& origin, Count first) {
  const Op op = operation.op;
  const int ranks = origin.ranks();
  std::vector<T> input(references.size());
  std::vector<Exact> exact;
  for (int rank = origin.first; rank <= origin.last; ++rank) {
    fill_input(std::as_writable_bytes(std::span(input)), input_of(operation, rank),
               operation.input_place(rank, origin.block).first + first);
    for (std::size_t i = 0; i < input.size(); ++i) {
      const double value = number(op == Op::premul_sum ? scaled(input[i], factor_of(rank)) : input[i]);
      if (rank == origin.first) {
        exact.emplace_back(value);
      } else {
        op == Op::prod ? exact[i].multiply(value) : exact[i].add(value);
      }
    }
  }
  const double relative = relative_bound<T>(op, ranks);
  const double absolute = op == Op::avg && ranks > 1 ? std::ldexp(1.0, kLeastExponent<T> - 1) : 0;
  for (std::size_t i = 0; i < references.size(); ++i) {
    if (op == Op::avg) exact[i].divide(ranks);
    references[i] = exact[i].reference(relative, absolute);
  }
}

/// Compares one chunk: results of T at `bytes`, the first of which is element `index` of the output.
template <class T>
void compare(std::span<const Reference> references, const std::byte* bytes, Count index, Comparison& comparison,
             Accuracy& accuracy) {
  for (std::size_t i = 0; i < references.size(); ++i) {
    const Reference& right = references[i];
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    const double distance = std::abs((number(value) - right.high) - right.low);
    const double error = std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
    if (error > right.bound) {
      const Count where = index + static_cast<Count>(i);
      if (comparison.add_wrong({where, bits_of(nearest<T>(right.high)), bits_of(value)})) {
        comparison.result().expected = fmt::format("{:.17g} within {:.2g}", right.high, right.bound);
      }
    }
    const double ulps = error / ulp_of<T>(right.high);
    accuracy.max_ulp = std::max(accuracy.max_ulp, ulps);
    accuracy.sum_ulp += ulps;
  }
  comparison.add_checked(static_cast<Count>(references.size()));
  accuracy.elements += static_cast<Count>(references.size());
}

}  // namespace

void Accuracy::add(const Accuracy& other) {
  elements += other.elements;
  max_ulp = std::max(max_ulp, other.max_ulp);
  sum_ulp += other.sum_ulp;
}

void fill_reference(std::span<Reference> references, const Operation& operation, const BlockPart& part) {
  TUTTI_ASSERT(operation.is_rounded(), "{} of {}", to_string(operation.op), to_string(operation.dtype));
  const Origin origin = origin_of(operation.problem, part.rank, part.block);
  visit_dtype(operation.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T>) fill_references<T>(references, operation, origin, part.first);
  });
}

CheckResult verify_rounded(const Operation& operation, const RankBuffer& output, Accuracy* accuracy, Count most) {
  Comparison comparison(operation);
  Accuracy seen;
  std::array<Reference, kReferences> references;
  for (int block = 0; block < output_blocks(operation.problem, output.rank); ++block) {
    const Place place = operation.output_place(output.rank, block);
    const Count chunks = std::max<Count>(1, std::min(place.count, most) / kReferences);
    const Count apart = most >= place.count ? kReferences : std::max(kReferences, place.count / chunks);
    for (Count first = 0; first < place.count; first += apart) {
      const Count elements = std::min(kReferences, place.count - first);
      const std::span<Reference> part = std::span(references).first(static_cast<std::size_t>(elements));
      fill_reference(part, operation, {.rank = output.rank, .block = block, .first = first});
      const Count index = place.first + first;
      const std::byte* bytes = output.bytes.data() + static_cast<std::size_t>(index) * size_of(operation.dtype);
      visit_dtype(operation.dtype, [&]<class T>(std::type_identity<T>) {
        if constexpr (!std::is_integral_v<T>) compare<T>(part, bytes, index, comparison, seen);
      });
    }
  }
  if (accuracy != nullptr) accuracy->add(seen);
  return comparison.judged(operation, output);
}

}  // namespace tutti::harness::verify
