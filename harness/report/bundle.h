// SPDX-License-Identifier: Apache-2.0
// What the page and its pictures are drawn from: one JSON document with the rows, the cells with their ratios, samples
// and what was judged. All that is computed of results is computed here; scripts/report only draws.
// scripts/report/README.md describes the document.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/report/result_file.h"

namespace tutti::harness::report {

struct BundleInfo {
  std::string made_by;  ///< the program's version
  std::string made;     ///< UTC, ISO 8601
};

/// JSON text. A row that stands in two of the files, such as a run's CSV and JSON, counts once.
[[nodiscard]] std::string bundle_of(std::span<const ResultFile> results, const BundleInfo& info);

/// Of many results of one machine: `history` has a series for each cell and system, oldest result first. A result of
/// another machine than the newest's is left out, and `omitted` says so; `left_out` are further such sentences.
[[nodiscard]] std::string history_bundle_of(std::vector<ResultFile> results, const BundleInfo& info,
                                            std::vector<std::string> left_out);

}  // namespace tutti::harness::report
