// SPDX-License-Identifier: Apache-2.0
// nccl-tests' flags, one table row each: letters, long names, abbreviations and meanings are theirs. What they take in
// silence is an error here: an unknown flag, type or op, a factor of 1.5, a size of 1T.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/conditions.h"
#include "harness/measure/stream.h"
#include "impl/types/dtype.h"
#include "impl/types/op.h"
#include "suites/perf/programs.h"
#include "suites/perf/traffic.h"

namespace tutti::perf {

struct Settings {
  int threads = 1;
  int devices = 1;  ///< per thread; here ranks, each a thread of its own
  std::int64_t min_bytes = std::int64_t{32} << 20U;
  std::int64_t max_bytes = std::int64_t{32} << 20U;
  std::int64_t step_bytes = std::int64_t{1} << 20U;
  int factor = 1;  ///< 1: sizes rise by step_bytes
  int iterations = 20;
  int warm_up = 1;
  int aggregated = 1;
  int cycles = 1;  ///< 0: for ever
  int checks = 1;
  std::vector<Op> ops = {Op::sum};
  std::vector<Dtype> dtypes = {Dtype::f32};
  int root = 0;  ///< -1: every rank
  int blocking = 0;
  int timeout_s = 60;
  int average = 1;  ///< 0 rank 0, 1 mean, 2 min, 3 max
  bool reports_cputime = false;
  bool reports_timestamps = false;
  bool reports_memory = false;
  int unaligned = 0;  ///< elements by which buffers are shifted
  bool times_each = false;
  int skipped = 0;              ///< of the times of each operation
  std::string compatible_json;  ///< -J
  std::string rccl_format;      ///< -Z: csv or json; empty: -x is no file
  std::string policy_or_file;   ///< -x
  std::string csv;
  std::string json;
  std::string backend;                    ///< tutti or nccl; empty until it is known which
  std::optional<harness::RunsOn> device;  ///< of tutti's ranks as thread blocks; empty: they are on CPUs
  int ranks_per_gpu = 1;
  int lanes = 0;                              ///< thread blocks of a rank; 0: as many as are usual
  int first_device = 0;                       ///< of NCCL_TESTS_DEVICE
  int launches = 0;                           ///< -G, of a graph of the loop; 0: there is none
  int registration = 0;                       ///< -R: 1 registers buffers, 2 as symmetric windows
  std::vector<std::pair<char, int>> of_gpus;  ///< flags that have a meaning on GPUs alone, and their values, not 0
  bool wants_help = false;
  bool wants_version = false;
  Traffic traffic;                 ///< of alltoallv; from the environment
  std::vector<std::string> notes;  ///< on what was asked for and has no meaning here

  [[nodiscard]] int ranks_here() const { return threads * devices; }
  /// Whether one thread calls for all ranks of a process.
  [[nodiscard]] bool has_one_host() const { return backend == "nccl" || device.has_value(); }
  /// Beyond any size where the product is.
  [[nodiscard]] std::int64_t next_size(std::int64_t size) const {
    constexpr std::int64_t kBeyond = std::numeric_limits<std::int64_t>::max();
    if (factor == 1) return size + step_bytes;
    return size > kBeyond / factor ? kBeyond : size * factor;
  }
};

/// Errors: invalid_argument that names the flag, the value and the nearest right one.
[[nodiscard]] Result<Settings> parse_flags(int argc, char** argv);
/// What of the settings needs the number of ranks, and that of the smallest group. Errors: invalid_argument.
[[nodiscard]] Status check_for(const Settings& settings, const Program& program, int ranks, int least_of_group);

[[nodiscard]] std::string help_text(const Program& program);

/// The name of an op as nccl-tests writes it.
[[nodiscard]] std::string_view op_name(Op op);

}  // namespace tutti::perf
