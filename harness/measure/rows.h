// SPDX-License-Identifier: Apache-2.0
// Rows: how what was measured of a case, or found by a check, becomes a row (harness/record/record.h). All rows of a
// session are made here.
#pragma once

#include <string>
#include <vector>

#include "harness/measure/cell.h"
#include "harness/measure/overlap.h"
#include "harness/measure/precision.h"
#include "harness/measure/reason.h"
#include "harness/measure/replay.h"
#include "harness/measure/series.h"
#include "harness/measure/stream.h"
#include "harness/measure/variant.h"
#include "harness/record/record.h"

namespace tutti::harness::measure {

/// What a cell has of one of its systems.
struct Measured {
  const Variant& variant;
  const Series& series;
  const Precision& precision;
  const OverlapResult& overlap;
};
[[nodiscard]] Row measured_row(const Measured& measured, const CellOptions& options);
/// What a cell has of one of its limits.
struct MeasuredLimit {
  const Series& series;
  std::string_view memory;  ///< in which it is, as rows have it
  std::string_view way;     ///< how it is measured
};
/// How near the rows of a cell whose buffers lie in such memory came to its limit. A limit whose results were wrong
/// does not count.
void set_limit(std::vector<Row>& rows, const MeasuredLimit& limit, const CellOptions& options);
/// What disturbed the cell of these rows, as CellWatch tells it.
void set_disturbed(std::vector<Row>& rows, const std::string& words);

/// Of a case that was measured as nccl-tests does.
[[nodiscard]] Row streamed_row(const Variant& variant, const StreamResult& result, const StreamOptions& options);
/// Puts it into the row, which is then `wrong` where a result was.
void set_precision(Row& row, const Precision& precision);

/// Of a case that was checked only (ok or wrong, with the diagnosis); `has_special`: on special values too.
[[nodiscard]] Row checked_row(const Variant& variant, const Damage& damage, bool has_special);
/// Puts what was measured of a step of a trace, or of the whole, into its row.
void set_replayed(Row& row, const ReplayedPart& part, double tick_us);

/// Of a case that was run on no runner: `skipped` where something is missing here, `wrong` where its plan is refuted,
/// else `error`.
[[nodiscard]] Row refused_row(const Case& one, const Reason& refusal);
/// The same for a row of something else.
void set_refused(Row& row, const Reason& refusal);

/// What a row says after what it was checked on: "; 3 passes of 15 ranks", "; random values", or nothing where all is
/// as usual.
[[nodiscard]] std::string inputs_text(const Variant& variant);

}  // namespace tutti::harness::measure
