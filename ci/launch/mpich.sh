#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutti on several machines, started by mpiexec of MPICH (Hydra), which hands the environment on. The first machine has
# rank 0, which reports.
#   HOSTS=node1:8,node2:8 ci/launch/mpich.sh run all_reduce --csv rows.csv
# MPIEXEC: another mpiexec. TUTTI: another tutti, the same path on all machines. What mpiexec needs: HYDRA_*.
set -euo pipefail
: "${HOSTS:?the machines, each with its number of ranks: node1:8,node2:8}"
export TUTTI_SECRET_FILE=${TUTTI_SECRET_FILE:-$HOME/.tutti-secret}
exec "${MPIEXEC:-mpiexec.hydra}" -hosts "$HOSTS" "${TUTTI:-tutti}" "$@" --init "tcp://${HOSTS%%[:,]*}:${TUTTI_PORT:-29400}"
