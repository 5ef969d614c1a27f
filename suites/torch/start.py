# SPDX-License-Identifier: Apache-2.0
"""usage: start.py HOW

A job of two ranks that meets as HOW says, and prints a sum. Without HOW: a rank of a job that a starter has made."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work():
    number = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(number)
    dist.destroy_process_group()
    return number.item()


def rank_of_spawn(rank, url, size):
    import tutti_torch  # noqa: F401
    dist.init_process_group("tutti", init_method=url, rank=rank, world_size=size)
    print("sum", work(), flush=True)


def main():
    if len(sys.argv) > 1:
        mp.spawn(rank_of_spawn, (sys.argv[1], 2), nprocs=2)
        return
    import tutti_torch  # noqa: F401
    for _ in range(2):  # a store that outlives its group
        dist.init_process_group("tutti")
        rank, total = dist.get_rank(), work()
    if os.environ.get("OUTPUT"):
        with open(f"{os.environ['OUTPUT']}.{rank}", "w", encoding="utf-8") as file:
            print("sum", total, file=file)


if __name__ == "__main__":
    main()
