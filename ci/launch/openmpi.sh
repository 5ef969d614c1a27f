#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutti on several machines, started by mpirun of Open MPI. The first machine has rank 0, which reports.
#   HOSTS=node1:8,node2:8 ci/launch/openmpi.sh run all_reduce --csv rows.csv
# MPIRUN: another mpirun. TUTTI: another tutti, the same path on all machines. What mpirun needs: OMPI_MCA_*.
set -euo pipefail
: "${HOSTS:?the machines, each with its number of ranks: node1:8,node2:8}"
export TUTTI_SECRET_FILE=${TUTTI_SECRET_FILE:-$HOME/.tutti-secret}
meeting=tcp://${HOSTS%%[:,]*}:${TUTTI_PORT:-29400}
exec "${MPIRUN:-mpirun}" --host "$HOSTS" --map-by slot -x TUTTI_SECRET_FILE "${TUTTI:-tutti}" "$@" --init "$meeting"
