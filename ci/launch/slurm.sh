#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutti as a job of Slurm, on each node as many ranks as there are tasks. Nodes meet at a port that is drawn from the
# ids of job and step, on the first one. TUTTI_PORT names another.
#   sbatch --nodes=4 --ntasks-per-node=8 ci/launch/slurm.sh run all_reduce --csv rows.csv
# TUTTI: another tutti, the same path on all nodes. SLURM_MPI_TYPE: none, pmi2 and pmix are all right.
#SBATCH --job-name=tutti
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=10
set -euo pipefail
export TUTTI_SECRET_FILE=${TUTTI_SECRET_FILE:-$HOME/.tutti-secret}
exec srun --distribution=block "${TUTTI:-tutti}" "$@"
