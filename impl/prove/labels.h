// SPDX-License-Identifier: Apache-2.0
// Labels that need no values: derived from the synchronisation and from the intervals alone.
#pragma once

#include "impl/prove/findings.h"
#include "impl/prove/layout.h"
#include "impl/prove/news.h"

namespace tutti {

/// A rank that can end before another has begun; {-1, -1} if there is none: the plans synchronise.
struct Escape {
  int rank = -1;
  int before = -1;
};
/// Requires: `news` has seen the plans run to their end.
[[nodiscard]] Escape find_escape(const News& news);

/// Whether no source of a copying send is written later in the operation, by its rank or through an exposure.
[[nodiscard]] bool sends_are_stable(const PlanSet& set, const Layout& layout);

}  // namespace tutti
