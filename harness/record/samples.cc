// SPDX-License-Identifier: Apache-2.0
#include "harness/record/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/record/csv.h"

namespace tutti::harness::record {

std::string samples_header() {
  return "case,launch,index,valid,global_us,last_arrival_us,skew_us,arrived_last,finished_last,rank_us,late_us,block,"
         "why";
}

std::string samples_lines(std::string_view case_id, std::int64_t launch, std::span<const Sample> samples) {
  const std::string name = csv_field(std::string(case_id));
  std::string lines;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& one = samples[i];
    const bool counts = one.is_valid && one.is_of_state;
    lines += fmt::format("{},{},{},{},{:.9g},{:.9g},{:.9g},{},{},{:.9g},{},{},{}\n", name, launch, i, counts ? 1 : 0,
                         one.global_us, one.last_arrival_us, one.skew_us, one.arrived_last, one.finished_last,
                         fmt::join(one.rank_us, " "), one.late_us ? fmt::format("{:.9g}", *one.late_us) : "", one.block,
                         !one.is_of_state ? "state"
                         : !one.is_valid  ? "late"
                                          : "");
  }
  return lines;
}

Result<SamplesFile> SamplesFile::open(std::string path) {
  TUTTI_ASSIGN_OR_RETURN(LineFile file, LineFile::open(std::move(path)));
  TUTTI_RETURN_IF_ERROR(file.append(samples_header() + "\n"));
  return SamplesFile(std::move(file));
}

}  // namespace tutti::harness::record
