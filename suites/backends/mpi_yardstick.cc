// SPDX-License-Identifier: Apache-2.0
// An independent measurement of MPI's collectives, with nothing of tutti in it: what tutti says of a reference is held
// against it (agrees_with_yardstick.py). Ranks meet in a barrier, each times the one call that follows, and the slowest
// rank's time is the sample. Buffers begin on a page, as tutti's and OSU's do. Where malloc puts them, Open MPI takes
// much longer for 16 and 64 KiB. A broadcast, which is in place, has fresh data each time. Prints "collective bytes
// median_us line_ns" per line. The last, a cache line's way from rank 0 to rank 1 and back, tells the states of a
// machine apart. Takes sizes in bytes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <mpi.h>

namespace {

constexpr int kWarmUp = 20, kMostSamples = 2000;
constexpr double kMostMicroseconds = 0.25e6;  // per cell

struct alignas(4096) Page {
  float values[1024];
};

double median_us(const std::function<void()>& prepare, const std::function<void()>& call) {
  std::vector<double> samples;
  double spent = 0;
  for (int i = 0; i < kWarmUp || (spent < kMostMicroseconds && i < kMostSamples); ++i) {
    prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call();
    double took = (MPI_Wtime() - begin) * 1e6;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);  // alike on all ranks
    spent += took;
    if (i >= kWarmUp) samples.push_back(took);
  }
  const auto middle = samples.begin() + samples.size() / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  return samples.empty() ? 0 : *middle;
}

double line_ns(std::atomic<int>& line, int rank) {
  constexpr int kTurns = 2000;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int turn = line.load(); rank < 2 && turn < kTurns; turn = line.load()) {
    if (turn % 2 == rank) line.store(turn + 1);
  }
  const double end = MPI_Wtime();
  MPI_Barrier(MPI_COMM_WORLD);
  line.store(0);
  return (end - begin) / kTurns * 2 * 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::atomic<int>* line = nullptr;  // of all ranks
  MPI_Win window;
  MPI_Aint bytes = 64;
  int unit = 1;
  MPI_Win_allocate_shared(rank == 0 ? bytes : 0, unit, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&line),
                          &window);
  MPI_Win_shared_query(window, 0, &bytes, &unit, static_cast<void*>(&line));
  for (int i = 1; i < argc; ++i) {
    const int count = std::atoi(argv[i]) / 4, block = count / ranks;
    std::vector<Page> input(count / 1024 + 1), output(input.size());
    float *const in = input[0].values, *const out = output[0].values;
    const auto nothing = [] {};
    const auto fill = [=] { std::fill_n(in, count, 2.0F); };
    const auto tell = [&](const char* name, const std::function<void()>& prepare, const std::function<void()>& call) {
      const double before_ns = line_ns(*line, rank), median = median_us(prepare, call), after_ns = line_ns(*line, rank);
      if (rank == 0) std::printf("%s %s %.3f %.1f\n", name, argv[i], median, std::max(before_ns, after_ns));
    };
    fill();
    tell("all_reduce", nothing, [=] { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
    tell("broadcast", fill, [=] { MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD); });
    tell("all_gather", nothing, [=] { MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD); });
    tell("all_to_all", nothing, [=] { MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  MPI_Win_free(&window);
  MPI_Finalize();
}
