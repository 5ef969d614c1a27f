# SPDX-License-Identifier: Apache-2.0
"""usage: shared.py RANKS FOLDER CASE

Ranks whose tensors lie in memory that they share, where TUTTI_TORCH_SHARED=1. They check every element. Each prints how
many of these memories it has mapped.
"""
import os
import sys

import numpy
import torch
import torch.distributed as dist

SIZES = [10, 16384, 100_003, 1 << 19]  # some below what is shared, some above


def everywhere(rank, ranks):
    """Tensors of torch's allocator; and a rank's own that lie elsewhere, or are not contiguous."""
    by_place = {"torch": lambda count, value: torch.full((count,), float(value)),
                "numpy": lambda count, value: torch.from_numpy(numpy.full(count, value, dtype=numpy.float32)),
                "strided": lambda count, value: torch.full((count, 2), float(value))[:, 0]}
    for count in SIZES:
        for place in by_place:
            run_calls(by_place[place if rank == ranks - 1 else "torch"], count, rank, ranks)


def run_calls(make, count, rank, ranks):
    total = ranks * (ranks + 1) / 2

    def check(tensor, value):
        assert (tensor == value).all(), (count, tensor, value)
    tensor = make(count, rank + 1)
    dist.all_reduce(tensor)
    check(tensor, total)
    tensor = make(count, rank + 1)
    dist.broadcast(tensor, ranks - 1)
    check(tensor, ranks)
    tensor = make(count, rank + 1)
    dist.reduce(tensor, 0)
    if rank == 0:
        check(tensor, total)
    lengths = [count + (peer if count > SIZES[0] else 0) for peer in range(ranks)]
    parts = [make(length, -1) for length in lengths]
    dist.all_gather(parts, make(lengths[rank], rank))
    for peer, part in enumerate(parts):
        check(part, peer)
    whole = make(count * ranks, -1)
    dist.all_gather_into_tensor(whole, make(count, rank))
    for peer, part in enumerate(whole.chunk(ranks)):
        check(part, peer)
    one = make(count, -1)
    dist.reduce_scatter(one, [make(count, peer) for peer in range(ranks)])
    check(one, ranks * rank)
    dist.reduce_scatter_tensor(one, torch.arange(float(ranks)).repeat_interleave(count) + 1)
    check(one, ranks * (rank + 1))
    dist.all_to_all_single(whole, torch.arange(float(ranks)).repeat_interleave(count) + 10 * rank)
    for peer, part in enumerate(whole.chunk(ranks)):
        check(part, rank + 10 * peer)
    tensors = [torch.full((count,), float(rank)) for _ in range(6)]
    for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
        work.wait()
    for tensor in tensors:
        check(tensor, total - ranks)


def fork(rank, ranks):
    """A child of a member keeps what its parent had, and its parent what it has."""
    tensor = torch.full((SIZES[-1],), 1.0)
    begin, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(begin, 1)  # the parent has written
        was = bool((tensor == 1.0).all())
        tensor.fill_(-1.0)
        del tensor
        own = torch.full((SIZES[-1],), 3.0)
        os._exit(0 if was and (own == 3.0).all() else 1)
    dist.all_reduce(tensor)
    os.write(go, b"x")
    assert os.waitpid(child, 0)[1] == 0, "a child sees what its parent wrote after the fork"
    assert (tensor == ranks).all(), tensor
    run_calls(lambda count, value: torch.full((count,), float(value)), SIZES[-1], rank, ranks)


def differing(rank, ranks):
    """One rank has no such memory."""
    everywhere(rank, ranks)


def main(rank, ranks, folder, case):
    torch.set_num_threads(1)
    if case == "differing" and rank == 1:
        os.environ["TUTTI_TORCH_SHARED"] = "0"
    import tutti_torch  # noqa: F401
    dist.init_process_group("tutti", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    {"everywhere": everywhere, "fork": fork, "differing": differing}[case](rank, ranks)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        os.write(1, f"mapped {maps.read().count('tutti-arena')}\n".encode())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    children = []
    for own in range(int(sys.argv[1])):
        pid = os.fork()
        if pid == 0:
            main(own, int(sys.argv[1]), sys.argv[2], sys.argv[3])
            sys.exit(0)
        children.append(pid)
    sys.exit(any([os.waitpid(pid, 0)[1] for pid in children]))
