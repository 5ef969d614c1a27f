#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tutti on several machines, by hand: starts the ranks of this machine. The first machine has rank 0, which reports.
#   HOSTS=node1:8,node2:8 ci/launch/by-hand.sh run all_reduce --csv rows.csv     # the same on each
# NODE: this machine's name in HOSTS, if that is not its hostname. TUTTI: another tutti.
set -euo pipefail
: "${HOSTS:?the machines, each with its number of ranks: node1:8,node2:8}"
export TUTTI_SECRET_FILE=${TUTTI_SECRET_FILE:-$HOME/.tutti-secret}
export WORLD_SIZE=0 LOCAL_WORLD_SIZE=0 MASTER_ADDR=${HOSTS%%[:,]*} TUTTI_PORT=${TUTTI_PORT:-29400}
here=${NODE:-$(hostname)} first=0
for host in ${HOSTS//,/ }; do
  [[ $host == *:* ]] || host+=:1
  [[ ${host%:*} != "$here" ]] || first=$WORLD_SIZE LOCAL_WORLD_SIZE=${host##*:}
  WORLD_SIZE=$((WORLD_SIZE + ${host##*:}))
done
((LOCAL_WORLD_SIZE > 0)) || { echo "by-hand: '$here' is none of HOSTS=$HOSTS: set NODE to the one that it is" >&2 && exit 2; }
for ((local = 1; local < LOCAL_WORLD_SIZE; ++local)); do
  RANK=$((first + local)) LOCAL_RANK=$local "${TUTTI:-tutti}" "$@" &
done
code=0
RANK=$first LOCAL_RANK=0 "${TUTTI:-tutti}" "$@" || code=$?
wait
exit "$code"
