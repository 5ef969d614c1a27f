// SPDX-License-Identifier: Apache-2.0
// How far samples depend on each other, and what that costs. Samples taken one after the other resemble their
// neighbours where something that lasts touches several of them. Examples are a neighbour on the core, a slow page, and
// a change of clock. Then n samples say less than n independent ones would. sign_inflation says how much less; an
// interval that ignores it is too narrow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/floors.h"

namespace tutti::harness::statistics {

/// Lag-1 autocorrelation: sum of (x[i] - mean)(x[i-1] - mean) over sum of (x[i] - mean)^2 (Box & Jenkins 1976). Empty
/// below two samples, or where all are equal.
[[nodiscard]] std::optional<double> autocorrelation(std::span<const double> samples);

/// By how much the variance of the number of samples below the median exceeds that of independent ones, n/4: at
/// least 1. It widens the interval of the median by its square root, as the sign test under dependence (Gastwirth &
/// Rubin 1971, JASA 66:816).
///
/// From 100 samples on it is a circular block bootstrap (Politis & Romano 1992, after Kuensch 1989) of that number,
/// seeded. It is drawn wherever lag 1 of the samples' signs shows dependence. Blocks are half as long again as is best
/// for the variance of a mean (Carlstein 1986, for a process of order 1): too short ones make the interval too narrow.
/// What blocks of that length leave out of such a process is put back. The result is at least that of such a process.
/// Below 100 samples, too few to show dependence, it is that of a process of order 1. The process has as much lag 1 as
/// the samples do not rule out, within reason. The intervals of few samples are thereby wider than they must be where
/// nothing depends.
[[nodiscard]] double sign_inflation(std::span<const double> samples, double median, std::uint64_t seed = 1);

}  // namespace tutti::harness::statistics
