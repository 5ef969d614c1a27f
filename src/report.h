// SPDX-License-Identifier: Apache-2.0
// Pages and pictures of results: what scripts/report draws, started here with the Python that can.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/report/result_file.h"
#include "harness/text/output_file.h"
#include "impl/types/status.h"

namespace tutti::program {

/// Where pictures go; what is empty is not made.
struct ReportFiles {
  std::string html;  ///< one page that needs no other file
  std::string png;   ///< a folder, a file for each picture
  std::string svg;   ///< the same
};

/// Says at once where there is nothing that draws, the scripts or a Python with the packages: time is spent on the
/// result all the same. TUTTI_PYTHON names a Python, else it is the python3 of PATH, else the distribution's. It runs
/// apart from the user's settings, packages and folder.
void warn_without_drawing();
/// Opens the page and makes the folders, before there is anything to write. Errors: invalid_argument naming the file.
[[nodiscard]] Status check_report_files(const ReportFiles& files, harness::OutputFiles& opened);

/// Draws results of one machine; check_report_files has `opened` the page. Errors: unavailable where nothing draws,
/// aborted where interrupted; invalid_argument where a file cannot be written, or the results are of several machines.
[[nodiscard]] Status make_report(std::span<const harness::ResultFile> results, const ReportFiles& files,
                                 harness::OutputFiles& opened);

/// Draws the page of an acceptance from its JSON. Errors: as make_report.
[[nodiscard]] Status make_accept_page(const std::string& document, const std::string& html,
                                      harness::OutputFiles& opened);

}  // namespace tutti::program
