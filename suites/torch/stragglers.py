# SPDX-License-Identifier: Apache-2.0
"""usage: stragglers.py RANKS SLOW FOLDER

A training loop whose rank SLOW comes late to each sum; -1: none does. Rank 0 prints what all ranks got, as JSON."""
import json
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_of_spawn(rank, ranks, slow, folder):
    import tutti_torch
    dist.init_process_group("tutti", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    nothing = tutti_torch.stragglers()
    for _ in range(80):
        time.sleep(0.01 if rank == slow else 0.001)
        dist.all_reduce(torch.ones(100))
        dist.broadcast(torch.ones(100), 0)  # the root need not wait: it says nothing of ranks
        dist.all_reduce(torch.ones(100), async_op=True).wait()
    found = tutti_torch.stragglers()
    everybody = [None] * ranks
    dist.all_gather_object(everybody, found)
    group = dist.new_group([0])
    alone = tutti_torch.stragglers(group) if rank == 0 else None
    other = dist.new_group(list(range(ranks)), backend="gloo")
    try:
        tutti_torch.stragglers(other)
        refused = ""
    except TypeError as error:
        refused = str(error)
    if rank == 0:
        print(json.dumps({"nothing": nothing, "found": everybody, "alone": alone, "refused": refused}))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_of_spawn, (int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]), nprocs=int(sys.argv[1]))
