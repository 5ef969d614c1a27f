// SPDX-License-Identifier: Apache-2.0
#include "suites/perf/programs.h"

#include <algorithm>
#include <array>

#include "impl/types/names.h"

namespace tutti::perf {
namespace {

constexpr std::array kPrograms{
    Program{.name = "all_reduce_perf", .collective = Collective::all_reduce},
    Program{.name = "all_gather_perf", .collective = Collective::all_gather},
    Program{.name = "broadcast_perf", .collective = Collective::broadcast},
    Program{.name = "reduce_perf", .collective = Collective::reduce},
    Program{.name = "reduce_scatter_perf", .collective = Collective::reduce_scatter},
    Program{.name = "alltoall_perf", .collective = Collective::all_to_all},
    Program{.name = "alltoallv_perf", .collective = Collective::all_to_all_v},
    Program{.name = "gather_perf", .collective = Collective::gather},
    Program{.name = "scatter_perf", .collective = Collective::scatter},
    Program{.name = "sendrecv_perf", .collective = Collective::sendrecv, .repeats_for_ops = true},
    Program{.name = "hypercube_perf",
            .collective = Collective::all_gather,
            .algorithm = "recursive_doubling",
            .is_hypercube = true},
};

}  // namespace

std::span<const Program> all_programs() { return kPrograms; }

Result<Program> find_program(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  std::vector<std::string> names;
  for (const Program& program : kPrograms) {
    if (program.name == name) return program;
    names.emplace_back(program.name);
  }
  return unknown_name("program", name, names);
}

Size size_for(const Program& program, std::int64_t bytes, Dtype dtype, int ranks) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const Count whole = bytes / element;
  if (!is_divided(program.collective)) return {.count = whole, .bytes = whole * element};
  const auto multiple = kChunkBytes / static_cast<Count>(size_of(dtype));
  const Count block = whole / ranks / multiple * multiple;
  return {.count = block, .bytes = block * ranks * element};
}

Bandwidths bandwidths_of(const Program& program, const Size& size, Dtype dtype, const Problem& problem,
                         double time_us) {
  constexpr double kBytesPerMicrosecond = 1e-3;
  if (time_us <= 0) return {};
  double bytes = static_cast<double>(size.bytes);
  if (program.is_hypercube) {
    bytes = static_cast<double>(size.count) * (problem.ranks - 1) * static_cast<double>(size_of(dtype));
  }
  const double algorithm = bytes / time_us * kBytesPerMicrosecond;
  return {.algorithm = algorithm, .bus = program.is_hypercube ? algorithm : algorithm * bus_factor(problem)};
}

}  // namespace tutti::perf
