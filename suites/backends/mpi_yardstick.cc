// SPDX-License-Identifier: Apache-2.0
// An independent measurement of MPI's collectives, with nothing of tutti in it: what tutti says of a reference is held
// against it (agrees_with_yardstick.py). Ranks meet in a barrier, each times the one call that follows, and the slowest
// rank's time is the sample. Buffers begin on a page, as tutti's and OSU's do: where malloc puts them, Open MPI takes
// two to four times as long for 16 and 64 KiB. A broadcast, which is in place, has fresh data each time. Prints
// "collective bytes median_us" per line; takes sizes in bytes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include <mpi.h>

namespace {

constexpr int kWarmUp = 20;
constexpr double kSecondsPerCell = 0.25;
constexpr int kMostSamples = 2000;
constexpr std::size_t kPage = 4096;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

std::unique_ptr<float[], Free> floats(int count) {
  const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(float) / kPage + 1) * kPage;
  std::unique_ptr<float[], Free> memory(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
  if (memory == nullptr) std::abort();
  std::fill_n(memory.get(), count, 1.0F);
  return memory;
}

double median_us(const std::function<void()>& prepare, const std::function<void()>& call) {
  std::vector<double> samples;
  double spent = 0;
  for (int i = 0; i < kWarmUp || (spent < kSecondsPerCell && i < kMostSamples); ++i) {
    prepare();
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
    const auto in = floats(count), out = floats(count);
    const auto nothing = [] {};
    const auto refill = [&] { std::fill_n(in.get(), count, 2.0F); };
    const auto tell = [&](const char* name, const std::function<void()>& prepare, const std::function<void()>& call) {
      const double median = median_us(prepare, call);
      if (rank == 0) std::printf("%s %s %.3f\n", name, argv[i], median);
    };
    tell("all_reduce", nothing, [&] { MPI_Allreduce(in.get(), out.get(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
    tell("broadcast", refill, [&] { MPI_Bcast(in.get(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); });
    tell("all_gather", nothing,
         [&] { MPI_Allgather(in.get(), block, MPI_FLOAT, out.get(), block, MPI_FLOAT, MPI_COMM_WORLD); });
    tell("all_to_all", nothing,
         [&] { MPI_Alltoall(in.get(), block, MPI_FLOAT, out.get(), block, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  MPI_Finalize();
}
