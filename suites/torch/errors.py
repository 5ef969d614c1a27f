# SPDX-License-Identifier: Apache-2.0
"""usage: errors.py RANKS FOLDER CASE...

Jobs of RANKS processes, of which one does something wrong, a few at a time. What rank R meets is FOLDER/CASE/R.json: the
exception's type, its text, and after how many seconds. A rank that ends leaves no file.
"""
import datetime
import json
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

TIMEOUT = 3  # s, of the group
AT_A_TIME = 4
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def killed(rank, x):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x[:2])


@case
def killed_before_a_group(rank, x):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.new_group(list(range(dist.get_world_size())))


@case
def killed_busy(rank, x):
    """In the middle of calls of 64 MiB."""
    long = torch.ones(1 << 24)
    for i in range(1000):
        if rank == 1 and i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(long)


def train(signalled, number):
    """DDP, whose autograd thread waits for futures. In the fifth step a rank that is `signalled` gets signal `number`."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    for step in range(100_000):
        if signalled and step == 5:
            os.kill(os.getpid(), number)
        model(torch.ones(4, 64)).sum().backward()


@case
def killed_training(rank, x):
    train(rank == 1, signal.SIGKILL)


@case
def stopped(rank, x):
    """Until the others have told of it."""
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(x)


@case
def stopped_training(rank, x):
    train(rank == 1, signal.SIGSTOP)


@case
def killed_elsewhere(rank, x):
    """It is in none of the groups that go on."""
    others = dist.new_group([other for other in range(dist.get_world_size()) if other != 1])
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    dist.all_reduce(x, group=others)
    assert x[0] == dist.get_world_size() - 1, x


@case
def killed_under_a_callback(rank, x):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x, async_op=True).get_future().then(lambda future: future.value()[0] * 2).wait()


@case
def absent(rank, x):
    if rank == 1:
        time.sleep(TIMEOUT + 1)
    dist.all_reduce(x)


@case
def exited(rank, x):
    if rank == 1:
        os._exit(0)
    dist.all_reduce(x)


@case
def left(rank, x):
    """It has destroyed its group, and lives."""
    if rank == 1:
        dist.destroy_process_group()
        time.sleep(TIMEOUT + 1)
        return
    dist.all_reduce(x)


@case
def sizes(rank, x):
    dist.all_reduce(torch.ones(10 + 5 * (rank == 1)))


@case
def dtypes(rank, x):
    dist.all_reduce(torch.ones(10, dtype=torch.int32 if rank == 1 else torch.float))


@case
def operations(rank, x):
    dist.all_reduce(x, op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)


@case
def roots(rank, x):
    dist.broadcast(x, src=1 if rank == 1 else 0)
    dist.barrier()  # for a root waits for nobody


@case
def calls(rank, x):
    dist.all_reduce(x) if rank != 1 else dist.barrier()


@case
def lists(rank, x):
    dist.all_gather([torch.empty(3 if rank == 1 else 2) for _ in range(dist.get_world_size())],
                    torch.ones(3 if rank == 1 else 2))


@case
def message_sizes(rank, x):
    if rank == 0:
        dist.send(torch.ones(4), dst=1)
        dist.barrier()
    elif rank == 1:
        dist.recv(torch.ones(8), src=0)
    else:
        dist.barrier()


@case
def no_sender(rank, x):
    if rank == 0:
        dist.recv(x, src=1)
    else:
        time.sleep(TIMEOUT + 1)


@case
def destroyed(rank, x):
    """The group is used again by one who has kept it."""
    group = dist.group.WORLD
    dist.destroy_process_group()
    if rank == 1:
        del group
        time.sleep(TIMEOUT + 1)
        return
    group.allreduce([x]).wait()


@case
def destroyed_here(rank, x):
    dist.destroy_process_group()
    dist.all_reduce(x)


@case
def sparse_broadcast(rank, x):
    dist.broadcast(torch.eye(4).to_sparse(), src=0)


@case
def bits_of_floats(rank, x):
    dist.all_reduce(x, op=dist.ReduceOp.BAND)


@case
def two_in_one(rank, x):
    dist.all_reduce(torch.ones(1).expand(4))


@case
def short_list(rank, x):
    dist.all_gather([torch.empty(1024)] * (dist.get_world_size() - 1), x)


@case
def short_wait(rank, x):
    """A wait that ends is no end of the call."""
    if rank == 1:
        time.sleep(1)
        dist.all_reduce(x)
        dist.barrier()
        return
    work = dist.all_reduce(x, async_op=True)
    try:
        work.wait(timeout=datetime.timedelta(milliseconds=100))
    finally:
        work.wait()
        assert x[0] == dist.get_world_size(), x
        dist.barrier()


def run(name, rank, ranks, folder):
    torch.set_num_threads(1)
    import tutti_torch  # noqa: F401
    dist.init_process_group("tutti", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=TIMEOUT))
    x = torch.ones(1024)
    dist.all_reduce(x)
    x.fill_(1)
    begin = time.monotonic()
    met = {"type": "", "text": ""}
    try:
        CASES[name](rank, x)
    except Exception as failure:
        met = {"type": type(failure).__name__, "text": str(failure)}
    met.update(seconds=time.monotonic() - begin, pid=os.getpid())
    unfinished = pathlib.Path(folder, f"{rank}.part")
    unfinished.write_text(json.dumps(met))
    unfinished.rename(pathlib.Path(folder, f"{rank}.json"))


def run_case(name, ranks, folder):
    os.makedirs(folder)
    children = {}
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run(name, rank, ranks, folder)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        children[child] = rank
    pathlib.Path(folder, "pids.json").write_text(json.dumps({rank: pid for pid, rank in children.items()}))
    while children:
        if name.startswith("stopped") and len(children) == 1:
            os.kill(*children, signal.SIGKILL)
        children.pop(os.wait()[0])


def main():
    ranks, folder, names = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    jobs = set()
    for name in names:
        if len(jobs) == AT_A_TIME:
            jobs.remove(os.wait()[0])
        job = os.fork()
        if job == 0:
            run_case(name, ranks, f"{folder}/{name}")
            os._exit(0)
        jobs.add(job)
    while jobs:
        jobs.remove(os.wait()[0])


if __name__ == "__main__":
    main()
