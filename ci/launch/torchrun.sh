#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutti on several machines, started by torchrun on each of them. Rank 0's machine reports.
#   NODES=2 RANKS=8 FIRST=node1 ci/launch/torchrun.sh run all_reduce --csv rows.csv     # the same on each
# FIRST is where torchrun's own processes meet, at MASTER_PORT (29500). tutti's ranks meet at the port after it.
# TUTTI: another tutti. TORCHRUN_OPTIONS: more words for torchrun.
set -euo pipefail
: "${NODES:?the number of machines}" "${RANKS:?the number of ranks on each}" "${FIRST:?the machine where all meet}"
export TUTTI_SECRET_FILE=${TUTTI_SECRET_FILE:-$HOME/.tutti-secret}
read -ra more <<<"${TORCHRUN_OPTIONS:-}"
exec torchrun --nnodes "$NODES" --nproc_per_node "$RANKS" --rdzv_backend c10d --rdzv_id "${JOB:-tutti}" \
  --rdzv_endpoint "$FIRST:${MASTER_PORT:-29500}" --max_restarts 0 "${more[@]}" --no_python \
  "${TUTTI:-$(command -v tutti)}" "$@"
