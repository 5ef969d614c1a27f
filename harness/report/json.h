// SPDX-License-Identifier: Apache-2.0
// Rows as JSON: one object per row, in which every column is a key and what was not measured is null. Numbers are the
// same text as in the CSV. Rows travel from the ranks to the launcher in this form, one per line. They end up in one
// document that is valid at any moment of the run. schema.json beside this file says what it holds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cases/expand.h"
#include "harness/record/record.h"
#include "harness/report/failed_job.h"
#include "harness/text/output_file.h"
#include "impl/types/status.h"

namespace tutti::harness::report {

inline constexpr int kSchemaVersion = 1;

/// What a document says besides its rows.
struct RunInfo {
  std::string machine_json = "{}";  ///< describe_machine(), as JSON text; of several hosts that of rank 0's
  std::vector<std::pair<std::string, std::string>> machines = {};  ///< of several hosts: name and the same of each
  std::map<std::string, std::string> versions = {};  ///< of tutti and of each backend: version, transport, ...
  std::string command = {};                          ///< as it was typed
  std::uint64_t seed = 1;
  std::string started = {};                        ///< UTC, ISO 8601
  std::map<std::string, double> measurement = {};  ///< facts of the instrument, such as `floor_us.P2`
  std::vector<LeftOut> left_out = {};
  std::map<std::string, std::string> bound = {};  ///< by `P2`: for each rank the cores that it may run on, as JSON text
  std::map<std::string, std::string> ranks = {};  ///< by `P2`: what each rank came to (ranks.h), as JSON text
  std::map<std::string, std::string> environment = {};  ///< what environment.h finds
  std::map<std::string, std::string> table = {};        ///< name and hash of that by which `auto` chooses
};

class JsonFile {
 public:
  /// Creates or replaces the file, with no rows: called before anything is measured. `-` is stdout, which gets nothing
  /// before end(); nor does a pipe or a device. With an empty path the document is only kept: text().
  /// Errors: invalid_argument naming the path and the reason.
  [[nodiscard]] static Result<JsonFile> open(std::string path, RunInfo info);

  /// Adds rows, usually those of one cell, and replaces the document.
  /// Errors: invalid_argument naming the path and the reason.
  Status write(std::span<const Row> rows);
  /// Adds or changes one entry of `measurement` and replaces the document. Errors: as write.
  Status set_measurement(const std::string& key, double value);
  /// Adds or changes one entry of `versions` and replaces the document. Errors: as write.
  Status set_version(const std::string& key, const std::string& text);
  /// Adds an entry to `left_out` and replaces the document. Errors: as write.
  Status leave_out(LeftOut item);
  /// Tells the machines of the ranks, in the place of those that were told before where these are as many or more, and
  /// replaces the document. Errors: as write.
  Status set_machines(std::vector<std::pair<std::string, std::string>> machines);
  /// Adds or changes one entry of `bound` and replaces the document. Errors: as write.
  Status set_bound(const std::string& key, const std::string& json_text);
  /// Adds or changes one entry of `ranks` and replaces the document. Errors: as write.
  Status set_ranks(const std::string& key, const std::string& json_text);
  /// Adds why the run, or a job of it, ended early, and replaces the document. Errors: as write.
  Status add_diagnosis(const FailedJob& diagnosis);
  /// Says that nothing more will be added, and replaces the document. Errors: as write.
  Status finish();
  /// Writes the document, finished or not, to stdout, a pipe or a device: called once, at the end. Errors: as write.
  [[nodiscard]] Status end();
  /// The document.
  [[nodiscard]] std::string text() const;

 private:
  JsonFile(std::string path, RunInfo info) : path_(std::move(path)), info_(std::move(info)) {}
  [[nodiscard]] bool is_on_stdout() const;
  [[nodiscard]] Status put();

  std::string path_;
  std::optional<OutputFile> file_;  ///< none: the document is only kept, or is printed
  RunInfo info_;
  std::string rows_;  ///< as they stand in the document
  std::string diagnoses_;
  bool is_finished_ = false;
};

}  // namespace tutti::harness::report
