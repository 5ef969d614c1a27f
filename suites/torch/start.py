# SPDX-License-Identifier: Apache-2.0
"""usage: start.py [URL [FILE]]

Two ranks that spawn starts, and that meet at URL, then twice in one store of FILE. Without URL: a rank of a job that a
starter has made. Each prints a sum for each group."""
import datetime
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def tell(number):
    os.write(1, f"sum {number.item()}\n".encode())  # in one piece, for all ranks write into one pipe


def add_up():
    number = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(number)
    tell(number)
    dist.destroy_process_group()


def rank_of_spawn(rank, url, file):
    import tutti_torch
    dist.init_process_group("tutti", init_method=url, rank=rank, world_size=RANKS)
    add_up()
    if file:
        store = dist.FileStore(file, RANKS)
        for _ in range(2):
            group = tutti_torch.create(store, rank, RANKS, datetime.timedelta(seconds=20))
            number = torch.tensor([rank + 1.0])
            group.allreduce([number]).wait()
            tell(number)


def main():
    if len(sys.argv) > 1:
        mp.spawn(rank_of_spawn, (sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""), nprocs=RANKS)
        return
    import tutti_torch  # noqa: F401
    dist.init_process_group("tutti")
    add_up()


if __name__ == "__main__":
    main()
