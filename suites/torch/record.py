# SPDX-License-Identifier: Apache-2.0
"""usage: record.py RANKS FOLDER

A program with a call of each kind that a trace has, in two steps, and calls that it does not have."""
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_of_spawn(rank, ranks, folder):
    import tutti_torch
    dist.init_process_group("tutti", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    part = dist.new_group([0])
    tutti_torch.step("forward")
    dist.all_gather([torch.empty(1 + peer) for peer in range(ranks)], torch.ones(1 + rank))
    dist.all_to_all_single(torch.empty(4 * ranks), torch.ones(4 * ranks))
    if rank == 0:
        dist.all_reduce(torch.ones(5), group=part)
    if rank < 2:
        dist.send(torch.ones(3), 1) if rank == 0 else dist.recv(torch.ones(3), 0)
    tutti_torch.step()
    dist.all_reduce(torch.ones(6, dtype=torch.bfloat16), op=dist.ReduceOp.MAX, async_op=True).wait()
    dist.broadcast(torch.ones(2, dtype=torch.int64), ranks - 1)
    dist.reduce_scatter(torch.empty(2), [torch.ones(2) for _ in range(ranks)])
    dist.gather(torch.ones(2), [torch.empty(2) for _ in range(ranks)] if rank == 0 else None, 0)
    dist.barrier()
    tutti_torch.step("forward")
    dist.all_reduce(torch.ones(0))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_of_spawn, (int(sys.argv[1]), sys.argv[2]), nprocs=int(sys.argv[1]))
