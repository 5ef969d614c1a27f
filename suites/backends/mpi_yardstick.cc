// SPDX-License-Identifier: Apache-2.0
// An independent measurement of MPI's collectives, with nothing of tutti in it: what tutti says of a reference is held
// against it (agrees_with_yardstick.py). Ranks meet in a barrier, each times the one call that follows, and the slowest
// rank's time is the sample. Prints "collective bytes median_us" per line; takes sizes in bytes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <mpi.h>

namespace {

constexpr int kWarmUp = 20;
constexpr double kSecondsPerCell = 0.25;
constexpr int kMostSamples = 2000;

double median_us(const std::function<void()>& call) {
  std::vector<double> samples;
  double spent = 0;
  for (int i = 0; i < kWarmUp || (spent < kSecondsPerCell && i < kMostSamples); ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call();
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);  // alike on all ranks
    spent += seconds;
    if (i >= kWarmUp) samples.push_back(seconds * 1e6);
  }
  if (samples.empty()) return 0;
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    const int count = std::atoi(argv[i]) / 4, block = count / ranks;
    std::vector<float> in(static_cast<std::size_t>(count), 1.0F), out(in.size());
    const auto tell = [&](const char* name, const std::function<void()>& call) {
      const double median = median_us(call);
      if (rank == 0) std::printf("%s %s %.3f\n", name, argv[i], median);
    };
    tell("all_reduce", [&] { MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
    tell("broadcast", [&] { MPI_Bcast(in.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); });
    tell("all_gather",
         [&] { MPI_Allgather(in.data(), block, MPI_FLOAT, out.data(), block, MPI_FLOAT, MPI_COMM_WORLD); });
    tell("all_to_all",
         [&] { MPI_Alltoall(in.data(), block, MPI_FLOAT, out.data(), block, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  MPI_Finalize();
}
