/* SPDX-License-Identifier: Apache-2.0
   An all_reduce of each size that SimGrid SMPI simulates. Prints ranks, bytes, and the microseconds from the last rank's
   begin to the last rank's end: ranks leave the barrier at different times, and that is no part of the collective. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    const int count = atoi(argv[i]) / (int)sizeof(float);
    float* input = calloc((size_t)count, sizeof(float));
    float* output = calloc((size_t)count, sizeof(float));
    if (input == NULL || output == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double end = MPI_Wtime();
    double last_begin, last_end;
    MPI_Allreduce(&begin, &last_begin, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&end, &last_end, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%d,%ld,%.3f\n", ranks, (long)count * (long)sizeof(float), 1e6 * (last_end - last_begin));
    free(input);
    free(output);
  }
  return MPI_Finalize();
}
