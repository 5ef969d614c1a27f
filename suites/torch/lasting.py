# SPDX-License-Identifier: Apache-2.0
"""usage: lasting.py BACKEND FOLDER CASE TIMES

Two ranks that do something again and again. Each prints a line of JSON: what its process has after a few times, and
after TIMES: kilobytes of memory, descriptors, mappings, threads, and mappings of tutti's worlds.
"""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

RANKS = 2
FEW = 50  # after which whatever grows once has grown
SETTLES = 10  # s, in which a helper of the last group has given back its memory, where it gets no core at once


def belongings():
    status = pathlib.Path("/proc/self/status").read_text()
    maps = pathlib.Path("/proc/self/maps").read_text()
    return {"KiB": int(status.split("VmRSS:")[1].split()[0]), "descriptors": len(os.listdir("/proc/self/fd")),
            "mappings": maps.count("\n"), "threads": len(os.listdir("/proc/self/task")), "worlds": maps.count("tutti-world")}


def belongings_at_rest(before):
    end = time.monotonic() + SETTLES
    while belongings()["worlds"] > before["worlds"] and time.monotonic() < end:
        time.sleep(0.01)
    return belongings()


def groups():
    """Made, used and destroyed."""
    group = dist.new_group()
    number = torch.ones(1)
    dist.all_reduce(number, group=group)
    assert number == RANKS, number
    dist.destroy_process_group(group)


def forks():
    """A member's child, as DataLoader starts them, between two calls. It has nothing of the group's memory."""
    number = torch.ones(1)
    dist.all_reduce(number)
    assert number == RANKS, number
    child = os.fork()
    if child == 0:
        os._exit(belongings()["worlds"])
    assert os.waitpid(child, 0)[1] == 0, "a child has memory of the group"


def loaders():
    """Two processes that load data, in the midst of calls."""
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=2)
    total = torch.zeros(1)
    for batch in loader:
        part = batch.sum().reshape(1)
        dist.all_reduce(part)
        total += part
    assert total == RANKS * 28, total


CASES = {case.__name__: case for case in [groups, forks, loaders]}


def main(rank, backend, folder, case, times):
    torch.set_num_threads(1)
    if backend == "tutti":
        import tutti_torch  # noqa: F401
    dist.init_process_group(backend, init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    before = None
    for turn in range(times + FEW):
        if turn == FEW:
            before = belongings()
        CASES[case]()
    dist.barrier()
    os.write(1, (json.dumps({"before": before, "after": belongings_at_rest(before)}) + "\n").encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child == 0:
            main(rank, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
            sys.exit(0)
        children.append(child)
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
