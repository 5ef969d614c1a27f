// SPDX-License-Identifier: Apache-2.0
// An all_reduce and its ranks' inputs as values of their type, for tests that reduce them in their own way.
#pragma once

#include <span>
#include <vector>

#include "harness/verify/inputs.h"
#include "harness/verify/oracle.h"

namespace tutti::harness::verify {

inline Operation all_reduce_of(Dtype dtype, Op op, int ranks, Count count, Values values) {
  return {.problem = {.collective = Collective::all_reduce, .ranks = ranks},
          .dtype = dtype,
          .op = op,
          .count = count,
          .salt = 3,
          .values = values};
}

template <class T>
std::vector<T> input(const Operation& operation, int rank) {
  std::vector<T> values(static_cast<std::size_t>(operation.count));
  fill_input(std::as_writable_bytes(std::span(values)), input_of(operation, rank));
  return values;
}

}  // namespace tutti::harness::verify
